package apiclient

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxStatusText bounds the characters of each text of a Status. Messages of API servers are
// shorter, unless they list many faults.
const MaxStatusText = 4096

// publicConstants are the constants of a Status that programs compare. They are never hidden, even
// if one contains a secret's text.
var publicConstants = func() map[string]bool {
	known := map[string]bool{metav1.StatusSuccess: true, metav1.StatusFailure: true}
	for _, reason := range []metav1.StatusReason{
		metav1.StatusReasonUnauthorized, metav1.StatusReasonForbidden, metav1.StatusReasonNotFound, metav1.StatusReasonAlreadyExists,
		metav1.StatusReasonConflict, metav1.StatusReasonGone, metav1.StatusReasonInvalid, metav1.StatusReasonServerTimeout,
		metav1.StatusReasonStoreReadError, metav1.StatusReasonTimeout, metav1.StatusReasonTooManyRequests, metav1.StatusReasonBadRequest,
		metav1.StatusReasonMethodNotAllowed, metav1.StatusReasonNotAcceptable, metav1.StatusReasonRequestEntityTooLarge,
		metav1.StatusReasonUnsupportedMediaType, metav1.StatusReasonInternalError, metav1.StatusReasonExpired,
		metav1.StatusReasonServiceUnavailable,
	} {
		known[string(reason)] = true
	}
	for _, cause := range []metav1.CauseType{
		metav1.CauseTypeFieldValueNotFound, metav1.CauseTypeFieldValueRequired, metav1.CauseTypeFieldValueDuplicate,
		metav1.CauseTypeFieldValueInvalid, metav1.CauseTypeFieldValueNotSupported, metav1.CauseTypeForbidden, metav1.CauseTypeTooLong,
		metav1.CauseTypeTooMany, metav1.CauseTypeInternal, metav1.CauseTypeTypeInvalid, metav1.CauseTypeUnexpectedServerResponse,
		metav1.CauseTypeFieldManagerConflict, metav1.CauseTypeResourceVersionTooLarge,
	} {
		known[string(cause)] = true
	}
	return known
}()

// CleanStatus makes the texts of a Status safe to print. They may come from any server that
// responds in place of the API.
func (s Secrets) CleanStatus(status *metav1.Status) {
	texts := []*string{&status.Message}
	words := []*string{&status.Status, (*string)(&status.Reason)}
	if details := status.Details; details != nil {
		texts = append(texts, &details.Name, &details.Group, &details.Kind, (*string)(&details.UID))
		for i := range details.Causes {
			cause := &details.Causes[i]
			texts = append(texts, &cause.Message, &cause.Field)
			words = append(words, (*string)(&cause.Type))
		}
	}
	for _, word := range words {
		if !publicConstants[*word] {
			texts = append(texts, word)
		}
	}
	for _, text := range texts {
		*text = s.Hide(Printable(*text, MaxStatusText))
	}
}
