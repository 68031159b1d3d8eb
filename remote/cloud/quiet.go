//go:build !nocloud

package cloud

import (
	"context"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
)

// quietCredentials returns an option of clients of S3 that keeps the SDK's log lines off the
// terminal: errors contain the same information. The credentials of a cloud instance write to a
// log of their own, so they are looked up again without that log. Credentials that the URL
// chooses, by role or anonymous, stay.
func quietCredentials(ctx context.Context, q url.Values) (func(*s3.Options), error) {
	if q.Get("role") != "" || q.Get("anonymous") != "" {
		return func(o *s3.Options) { o.Logger = logging.Nop{} }, nil
	}
	options := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if profile := q.Get("profile"); profile != "" {
		options = append(options, config.WithSharedConfigProfile(profile))
	}
	if region := q.Get("region"); region != "" { // STS, which issues some credentials, is asked in this region
		options = append(options, config.WithRegion(region))
	}
	c, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, err
	}
	return func(o *s3.Options) { o.Logger, o.Credentials = logging.Nop{}, c.Credentials }, nil
}
