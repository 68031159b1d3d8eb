//go:build nocloud

package cloud

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/web"
)

// Built reports whether the SDKs of the clouds are part of the program.
const Built = false

// Open opens URLs of the web. For any other URL it returns an error that says how to build the
// program.
func Open(_ context.Context, text string) (remote.Bucket, *remote.URL, error) {
	u, err := remote.ParseURL(text)
	if err != nil {
		return nil, nil, err
	}
	switch u.Scheme {
	case "https", "http", "hf":
		b, err := web.Open(u)
		return b, u, err
	}
	return nil, nil, fmt.Errorf("open %s: this program was built with -tags nocloud, without %s://; build it without "+
		"that tag (make build): %w", u, u.Scheme, errors.ErrUnsupported)
}
