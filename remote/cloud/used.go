//go:build !nocloud

package cloud

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/penstock/penstock/remote"
)

// used says with which credentials and where a store was asked that refuses: names of settings,
// never secrets.
func (b *bucket) used(kind error) string {
	if !slices.Contains([]error{remote.ErrPermission, remote.ErrNoBucket, remote.ErrInvalid}, kind) {
		return ""
	}
	var amazon *s3.Client
	switch {
	case b.scheme == "s3" && b.blob.As(&amazon):
		return usedByS3(amazon.Options())
	case b.scheme == "gs":
		return fmt.Sprintf(" (credentials: %s)", set("gcloud auth application-default login",
			"GOOGLE_APPLICATION_CREDENTIALS"))
	case b.scheme == "azblob":
		return fmt.Sprintf(" (account: %s; credentials: %s)",
			cmp.Or(os.Getenv("AZURE_STORAGE_ACCOUNT"), "from the URL"),
			set("a login", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"))
	}
	return ""
}

// usedByS3 says with which region, endpoint and credentials a request was made. The SDK finds them
// in a dozen places, and a refusal without them leaves users guessing.
func usedByS3(o s3.Options) string {
	said := []string{"region: " + cmp.Or(o.Region, "none")}
	if e := aws.ToString(o.BaseEndpoint); e != "" {
		said = append(said, "endpoint: "+remote.Redact(e))
	}
	if _, anonymous := o.Credentials.(aws.AnonymousCredentials); o.Credentials == nil || anonymous {
		return " (" + strings.Join(append(said, "credentials: none"), "; ") + ")"
	}
	// The SDK has cached the credentials, unless they are what is missing.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if c, err := o.Credentials.Retrieve(ctx); err == nil && c.Source != "" {
		source := c.Source
		if source == "EnvConfigCredentials" {
			source = "AWS_ACCESS_KEY_ID"
		}
		said = append(said, "credentials: "+source)
	}
	return " (" + strings.Join(said, "; ") + ")"
}

// set returns the first of some environment variables that is set, or what is used without them.
func set(without string, names ...string) string {
	for _, name := range names {
		if os.Getenv(name) != "" {
			return name
		}
	}
	return without
}
