package cachetest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// continueToken is the content of a continue string. It is opaque to clients, and its format may
// change.
type continueToken struct {
	// Version is the version of the state that all pages show, or anyVersion.
	Version int64 `json:"v"`
	// Epoch is the source's token epoch when the token was made; a later epoch expires it.
	Epoch int64 `json:"e"`
	// Page is the number of the page that this token requests, from 2.
	Page int `json:"p"`
	// After is the last key of the previous page.
	After key `json:"k"`
}

// anyVersion is the version of the token in a 410: the list may continue with the newest objects,
// inconsistently.
const anyVersion = -1

func (t continueToken) encode() string {
	// A struct of numbers and strings can always be encoded.
	b, _ := json.Marshal(t)
	return base64.RawURLEncoding.EncodeToString(b)
}

func decodeContinueToken(s string) (continueToken, error) {
	var t continueToken
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	// The next page needs a number too.
	if err == nil &&
		(t.Version < anyVersion || t.Version == 0 || t.Page < 2 || t.Page == math.MaxInt) {
		err = fmt.Errorf("no version or page in it")
	}
	if err != nil {
		return t, apierrors.NewBadRequest(fmt.Sprintf("continue key is not valid: %v", err))
	}
	return t, nil
}

// expired returns the error for a token whose state is compacted. As on an API server it has a
// token for an inconsistent continuation.
func (t continueToken) expired(epoch int64) error {
	status := apierrors.NewResourceExpired(
		"The provided continue parameter is too old to display a consistent list result. " +
			"Start a new list, or continue with the token in this answer, " +
			"whose pages come from a newer state.")
	t.Version = anyVersion
	t.Epoch = epoch
	status.ErrStatus.ListMeta.Continue = t.encode()
	return status
}
