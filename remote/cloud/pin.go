//go:build !nocloud

package cloud

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"gocloud.dev/blob"

	"github.com/penstock/penstock/remote/web"
)

// pin makes the store refuse a read if the object does not have the version etag; an empty etag
// allows any version.
type pin struct {
	etag string
}

// ownConnections gives a client of S3 connections with the SDK's settings, proxies and certificate
// authorities, but keeps as many as there are parallel requests, where the SDK keeps ten. It does
// not follow redirects to other hosts.
func ownConnections(o *s3.Options) {
	if b, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
		o.HTTPClient = &http.Client{Transport: b.WithTransportOptions(web.KeepMany).GetTransport(), Timeout: b.GetTimeout(),
			CheckRedirect: sameHost}
	}
}

// sameHost allows redirects to another path of the same host only: package net/http would send
// headers to the other host that it does not know to be secret, such as the token of a session.
func sameHost(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case r.Response == nil || r.Response.StatusCode != http.StatusTemporaryRedirect &&
		r.Response.StatusCode != http.StatusPermanentRedirect:
		return http.ErrUseLastResponse // other redirects change the method
	case r.URL.Host != first.Host || r.URL.Scheme != first.Scheme:
		return fmt.Errorf("the answer leads to another host, %s, which gets no credentials", r.URL.Host)
	case len(via) > 9:
		return errors.New("redirected 10 times")
	}
	return nil
}

// clockRetryer repeats a request once if its signature was made at the wrong time: from the
// refusal, the SDK knows the store's clock.
type clockRetryer struct{ aws.NopRetryer }

// IsErrorRetryable implements aws.Retryer.
func (clockRetryer) IsErrorRetryable(err error) bool {
	return says(err, []string{"RequestTimeTooSkewed"})
}

// MaxAttempts implements aws.Retryer.
func (clockRetryer) MaxAttempts() int { return 2 }

// RetryDelay implements aws.Retryer.
func (clockRetryer) RetryDelay(int, error) (time.Duration, error) { return 0, nil }

// before adds to a request the headers or conditions with which the SDK asks for the pinned
// version. It also switches off S3's own retries, except the retry that corrects the clock: package
// requests retries, with one limit for all.
func (p *pin) before(as func(any) bool) error {
	var tuning *[]func(*s3.Options)
	if as(&tuning) {
		*tuning = append(*tuning, func(o *s3.Options) {
			o.Retryer = clockRetryer{}
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired // a range has no checksum
		})
	}
	if p.etag == "" {
		return nil
	}
	var amazon *s3.GetObjectInput
	var azure *azblob.DownloadStreamOptions
	var google **storage.ObjectHandle
	switch {
	case as(&amazon):
		amazon.IfMatch = aws.String(p.etag)
	case as(&azure):
		tag := azcore.ETag(p.etag)
		azure.AccessConditions = &azblob.AccessConditions{
			ModifiedAccessConditions: &azblob.ModifiedAccessConditions{IfMatch: &tag},
		}
	case as(&google):
		if n, ok := generationOf(p.etag); ok {
			*google = (*google).Generation(n)
		}
	}
	return nil
}

// tagOf returns the version of the object that a body is of, empty if the answer does not say.
func tagOf(r *blob.Reader) string {
	var amazon s3.GetObjectOutput
	var azure azblob.DownloadStreamResponse
	var google *storage.Reader
	switch {
	case r.As(&amazon):
		return aws.ToString(amazon.ETag)
	case r.As(&azure):
		if azure.ETag != nil {
			return string(*azure.ETag)
		}
		return ""
	case r.As(&google):
		return generationTag(google.Attrs.Generation)
	}
	return fileTag(r)
}

// listedTag returns the version of an object in a listing, written as tagOf writes the version
// of a body; empty if the listing has no version.
func listedTag(o *blob.ListObject) string {
	var amazon types.Object
	var azure container.BlobItem
	var google storage.ObjectAttrs
	switch {
	case o.IsDir:
	case o.As(&amazon):
		return aws.ToString(amazon.ETag)
	case o.As(&azure):
		if azure.Properties != nil && azure.Properties.ETag != nil {
			return `"` + strings.Trim(string(*azure.Properties.ETag), `"`) + `"` // only headers have the quotes
		}
	case o.As(&google):
		return generationTag(google.Generation)
	default:
		return versionTag(o.ModTime, o.Size)
	}
	return ""
}

// beginOf returns the offset in the object of a body's first byte, if the answer says. An answer
// without a range has the whole object, so it begins at 0.
func beginOf(r *blob.Reader) (begin int64, known bool) {
	var amazon s3.GetObjectOutput
	var azure azblob.DownloadStreamResponse
	var google *storage.Reader
	switch {
	case r.As(&amazon):
		return rangeBegin(amazon.ContentRange), true
	case r.As(&azure):
		return rangeBegin(azure.ContentRange), true
	case r.As(&google):
		return google.Attrs.StartOffset, true
	}
	return 0, false
}

// rangeBegin parses the start of a Content-Range such as "bytes 100-199/1000"; -1 if it cannot be
// parsed.
func rangeBegin(header *string) int64 {
	var begin int64
	if header == nil {
		return 0
	}
	if _, err := fmt.Sscanf(*header, "bytes %d-", &begin); err != nil {
		return -1
	}
	return begin
}

// fileTag returns the ETag that fileblob computes from a file's time and size.
func fileTag(r *blob.Reader) string { return versionTag(r.ModTime(), r.Size()) }

// versionTag has the form of fileblob's ETag.
func versionTag(t time.Time, size int64) string { return fmt.Sprintf("\"%x-%x\"", t.UnixNano(), size) }

// generationTag names a version of an object of Google's, which is a number: reads take this number
// and no ETag.
func generationTag(n int64) string { return fmt.Sprintf("generation %d", n) }

// generationOf returns the number in a generationTag.
func generationOf(tag string) (n int64, ok bool) {
	_, err := fmt.Sscanf(tag, "generation %d", &n)
	return n, err == nil
}
