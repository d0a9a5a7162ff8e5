package cachetest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// continueToken is what a page's continue string says. Clients must treat it as
// opaque; its form may change.
type continueToken struct {
	// Version is the state that all pages of the list are cut from, or
	// anyVersion.
	Version int64 `json:"v"`
	// Epoch is the source's token epoch when the token was made; a later epoch
	// makes it expired.
	Epoch int64 `json:"e"`
	// Page is the number of the page this token asks for, from 2.
	Page int `json:"p"`
	// After is the last key of the page before.
	After key `json:"k"`
}

// anyVersion marks the token that a 410 carries: the list may continue with the objects
// newest, at the price of pages that do not fit together.
const anyVersion = -1

func (t continueToken) encode() string {
	// A struct of numbers and strings always has a JSON form.
	b, _ := json.Marshal(t)
	return base64.RawURLEncoding.EncodeToString(b)
}

func decodeContinueToken(s string) (continueToken, error) {
	var t continueToken
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	// There is a number for the page behind it, too.
	if err == nil && (t.Version < anyVersion || t.Version == 0 || t.Page < 2 || t.Page == math.MaxInt) {
		err = fmt.Errorf("no version or page in it")
	}
	if err != nil {
		return t, apierrors.NewBadRequest(fmt.Sprintf("continue key is not valid: %v", err))
	}
	return t, nil
}

// expired is the answer to a token whose state is compacted. Like an API server's it
// carries a token to go on with inconsistently.
func (t continueToken) expired(epoch int64) error {
	status := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"Start a new list, or continue with the token in this answer, whose pages come from a newer state.")
	t.Version, t.Epoch = anyVersion, epoch
	status.ErrStatus.ListMeta.Continue = t.encode()
	return status
}
