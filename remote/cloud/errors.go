//go:build !nocloud

package cloud

import (
	"errors"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"

	"gocloud.dev/gcerrors"

	"github.com/penstock/penstock/remote"
)

// kindOf returns the sentinel for an error of a driver; nil means that the fault may pass.
func kindOf(op string, err error) error {
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		if says(err, noBucket) {
			return remote.ErrNoBucket
		}
		return remote.ErrNotFound
	case gcerrors.PermissionDenied:
		return remote.ErrPermission
	case gcerrors.AlreadyExists:
		return remote.ErrExists
	case gcerrors.InvalidArgument, gcerrors.Unimplemented:
		return remote.ErrInvalid
	case gcerrors.FailedPrecondition:
		if op == "write" {
			return remote.ErrExists
		}
		return remote.ErrChanged
	}
	if errors.Is(err, os.ErrPermission) || says(err, denials) {
		return remote.ErrPermission
	}
	if kind := ofStatus(err); kind != nil {
		return kind
	}
	return adviceFor(err.Error()).kind
}

// ofStatus returns the sentinel for an HTTP status for which gocloud.dev has no code.
func ofStatus(err error) error {
	switch statusOf(err) {
	case http.StatusUnauthorized, http.StatusForbidden:
		return remote.ErrPermission
	case http.StatusNotFound, http.StatusGone:
		return remote.ErrNotFound
	case http.StatusPreconditionFailed:
		return remote.ErrChanged
	case http.StatusMovedPermanently, http.StatusMethodNotAllowed, http.StatusRequestURITooLong,
		http.StatusRequestedRangeNotSatisfiable, http.StatusNotImplemented:
		return remote.ErrInvalid
	case http.StatusBadRequest:
		var code interface{ ErrorCode() string }
		if errors.As(err, &code) && slices.Contains(refusals, code.ErrorCode()) {
			return remote.ErrInvalid
		}
	}
	return nil
}

// refusals lists codes of S3's bad requests that would be refused again. Other bad requests, such
// as a body that arrived corrupt or too slowly, are worth another attempt.
var refusals = []string{"InvalidBucketName", "InvalidArgument", "InvalidRequest", "InvalidURI", "KeyTooLongError",
	"IllegalLocationConstraintException"}

// noBucket has the words by which stores report that the bucket is missing and not the object.
var noBucket = []string{"NoSuchBucket", "ContainerNotFound", "specified bucket does not exist"}

// denials are messages of the SDKs about missing or wrong credentials for which gocloud.dev has no
// code.
var denials = []string{
	"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "AuthorizationFailure", "AuthorizationHeaderMalformed",
	"XAdminUserNotFound", "failed to retrieve credentials", "get credentials",
}

// advice says what to do about missing credentials or settings, for which each SDK has an error
// text of its own.
type advice struct {
	said string
	kind error
	todo string
}

// Advice that several errors share.
const (
	forS3 = "; give credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile of ~/.aws, or " +
		"?anonymous=true for a public bucket"
	forAzure = "; give credentials: az login, or AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or " +
		"AZURE_STORAGE_CONNECTION_STRING"
	forURL    = "; write the endpoint with its scheme: ?endpoint=https://HOST:PORT"
	forGoogle = "; give credentials: gcloud auth application-default login, or GOOGLE_APPLICATION_CREDENTIALS, or " +
		"?anonymous=true for a public bucket"
)

// knownErrors has the advice for errors, by a part of their text. The SDKs do not export these
// errors.
var knownErrors = []advice{
	{"no EC2 IMDS role found", remote.ErrPermission, forS3},
	{"Invalid region: ", remote.ErrInvalid, "; name the region: ?region=eu-west-1, or AWS_REGION"},
	{"PermanentRedirect", remote.ErrInvalid, "; the bucket is in another region: name that, ?region=eu-west-1"},
	{"MovedPermanently", remote.ErrInvalid, "; the bucket is in another region: name that, ?region=eu-west-1"},
	{"failed to parse endpoint URL", remote.ErrInvalid, forURL},
	{"unsupported protocol scheme", remote.ErrInvalid, forURL},
	{"server gave HTTP response to HTTPS client", remote.ErrInvalid,
		"; the endpoint speaks HTTP: ?endpoint=http://HOST:PORT"},
	{"certificate signed by unknown authority", remote.ErrInvalid,
		"; name a file with its authority: AWS_CA_BUNDLE for S3, SSL_CERT_FILE for any store"},
	{"could not find default credentials", remote.ErrPermission, forGoogle},
	{"GOOGLE_APPLICATION_CREDENTIALS environment variable", remote.ErrPermission, forGoogle},
	{"DefaultAzureCredential", remote.ErrPermission, forAzure},
	{"Options.AccountName is required", remote.ErrInvalid,
		"; name the account: ?storage_account=NAME, or AZURE_STORAGE_ACCOUNT"},
}

// adviceFor returns the advice for an error's text, the zero advice if the text is unknown.
func adviceFor(text string) advice {
	for _, h := range knownErrors {
		if strings.Contains(text, h.said) {
			return h
		}
	}
	return advice{}
}

// says reports whether the text of an error contains one of some words.
func says(err error, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(err.Error(), w) })
}

// statusOf returns the HTTP status of an error, 0 if the error has no status.
func statusOf(err error) int {
	var s interface{ HTTPStatusCode() int }
	if errors.As(err, &s) {
		return s.HTTPStatusCode()
	}
	return 0
}

// ids matches the request IDs that S3's support asks for. They are of no use without an answer, or
// if an object is missing.
var ids = regexp.MustCompile(`https response error StatusCode: \d+, RequestID: [^,]*, HostID: [^,]*, `)

// cause shortens the text that gocloud.dev and the SDKs put around an error, and adds advice.
func cause(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if at := strings.Index(text, "(code="); at >= 0 {
		if end := strings.Index(text[at:], "): "); end >= 0 {
			text = text[at+end+3:]
		}
	}
	text, _, _ = strings.Cut(text, " Attempted credentials:")                              // a long text for each
	text = strings.ReplaceAll(text, "DefaultAzureCredential: ", "DefaultAzureCredential ") // it is not a credential
	if status := statusOf(err); status == 0 || status == http.StatusNotFound {
		text = ids.ReplaceAllString(text, "")
	}
	todo := adviceFor(text).todo
	if strings.Contains(text, "Invalid region: ") { // four errors in one, and none says more
		text = "no region, or one that does not exist"
	}
	if todo != "" {
		text = strings.TrimSuffix(text, ".") + todo
	}
	return shortened{text, err}
}

// shortened is an error with another text.
type shortened struct {
	text string
	error
}

func (s shortened) Error() string { return s.text }
func (s shortened) Unwrap() error { return s.error }
