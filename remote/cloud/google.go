//go:build !nocloud

package cloud

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"

	"github.com/penstock/penstock/remote/web"
)

// openGoogle opens a bucket of Google's by a client with connections of its own, as gocloud.dev's client sends all
// reads over one connection. Missing credentials are an error, where gocloud.dev would print a line and go on without
// them. gocloud.dev opens emulators.
func openGoogle(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	q := u.Query()
	if os.Getenv("STORAGE_EMULATOR_HOST") != "" || os.Getenv("STORAGE_EMULATOR_HOST_GRPC") != "" ||
		q.Has("universe_domain") {
		return blob.OpenBucket(ctx, u.String())
	}
	if isAnonymous(q) {
		plain := *u
		if !q.Has("grpc") && !q.Has("zonal") { // which have no HTTP client
			q.Del("anonymous") // it would have its own
			q.Del("access_id")
			plain.RawQuery = q.Encode()
		}
		return (&gcsblob.URLOpener{Client: gcp.NewAnonymousHTTPClient(googleTransport())}).OpenBucketURL(ctx, &plain)
	}
	creds, err := gcp.DefaultCredentials(context.WithoutCancel(ctx)) // tokens are renewed as long as the bucket is open
	if err != nil {
		return nil, err
	}
	client, err := gcp.NewHTTPClient(googleTransport(), creds.TokenSource)
	if err != nil {
		return nil, err
	}
	opener := &gcsblob.URLOpener{Client: client, TokenSource: gcp.CredentialsTokenSource(creds)}
	return opener.OpenBucketURL(ctx, u)
}

func isAnonymous(q url.Values) bool {
	yes, err := strconv.ParseBool(q.Get("anonymous"))
	return err == nil && yes || q.Get("access_id") == "-"
}

func googleTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	web.KeepMany(t)
	return t
}
