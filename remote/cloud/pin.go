//go:build !nocloud

package cloud

import (
	"fmt"
	"net/http"
	"sync"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
)

// pin has a read fail on the side of the store if the object is not the version with an
// ETag.
type pin struct {
	etag        string
	connections *connections
	unchecked   bool // the store cannot
}

// connections are what the reads of a bucket go through: as many are kept as there are reads at a
// time, where the SDK keeps ten.
type connections struct {
	once   sync.Once
	client s3.HTTPClient
}

// of returns a client like the one that the SDK is configured with, with its proxies and authorities.
func (c *connections) of(sdk s3.HTTPClient) s3.HTTPClient {
	c.once.Do(func() {
		c.client = sdk
		if b, ok := sdk.(*awshttp.BuildableClient); ok {
			c.client = b.WithTransportOptions(keepMany).Freeze()
		}
	})
	return c.client
}

// keepMany has each read go over a connection of its own: those that share one of HTTP/2 share its
// window.
func keepMany(t *http.Transport) {
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.ForceAttemptHTTP2 = false
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 1024, 1024
	t.DisableCompression = true // a range is one of stored bytes
	t.ReadBufferSize = 64 << 10
}

// before sets what the request of each SDK needs. Retries are the Client's, so S3's own are
// switched off.
func (p *pin) before(as func(any) bool) error {
	var tuning *[]func(*s3.Options)
	if as(&tuning) {
		*tuning = append(*tuning, func(o *s3.Options) {
			o.Retryer = aws.NopRetryer{}
			o.HTTPClient = p.connections.of(o.HTTPClient)
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired // a range has none
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
		azure.AccessConditions = &azblob.AccessConditions{ModifiedAccessConditions: &azblob.ModifiedAccessConditions{IfMatch: &tag}}
	case as(&google):
		if n, ok := generationOf(p.etag); ok {
			*google = (*google).Generation(n)
		}
	default:
		p.unchecked = true
	}
	return nil
}

// tagOf returns the ETag that came with a body; empty where none did.
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

// fileTag is the ETag that fileblob makes of a file's time and size.
func fileTag(r *blob.Reader) string {
	return fmt.Sprintf("\"%x-%x\"", r.ModTime().UnixNano(), r.Size())
}

// generationTag names a version of an object of Google's: reads take the number of a version
// and no ETag.
func generationTag(n int64) string { return fmt.Sprintf("generation %d", n) }

func generationOf(tag string) (n int64, ok bool) {
	_, err := fmt.Sscanf(tag, "generation %d", &n)
	return n, err == nil
}
