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

// openGoogle opens a bucket of Google Cloud Storage by a client with connections of its own:
// gocloud.dev's client sends all reads over one HTTP/2 connection. Missing credentials are an error
// here, where gocloud.dev would print a line and go on without. Emulators are left to gocloud.dev.
func openGoogle(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	q := u.Query()
	if os.Getenv("STORAGE_EMULATOR_HOST") != "" || os.Getenv("STORAGE_EMULATOR_HOST_GRPC") != "" ||
		q.Has("universe_domain") {
		return blob.OpenBucket(ctx, u.String())
	}
	if isAnonymous(q) {
		plain := *u
		if !q.Has("grpc") && !q.Has("zonal") { // these two have no HTTP client
			q.Del("anonymous") // else it makes its own client
			q.Del("access_id")
			plain.RawQuery = q.Encode()
		}
		return (&gcsblob.URLOpener{Client: gcp.NewAnonymousHTTPClient(googleTransport())}).OpenBucketURL(ctx, &plain)
	}
	creds, err := gcp.DefaultCredentials(context.WithoutCancel(ctx)) // tokens are renewed while the bucket is open
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

// isAnonymous reports whether a URL asks for access without credentials.
func isAnonymous(q url.Values) bool {
	yes, err := strconv.ParseBool(q.Get("anonymous"))
	return err == nil && yes || q.Get("access_id") == "-"
}

// googleTransport returns a transport with a connection for each read.
func googleTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	web.KeepMany(t)
	return t
}
