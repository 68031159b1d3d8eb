package web

import "github.com/penstock/penstock/remote"

// Open returns the bucket of a URL. It makes no request.
func Open(u *remote.URL) (remote.Bucket, error) {
	b := &bucket{site: newSite()}
	var err error
	if u.Scheme == "hf" {
		b.place, err = newHub(u, b.site)
	} else {
		b.place, err = newServer(u, b.site)
	}
	if err != nil {
		return nil, remote.NewError("open", u.String(), remote.ErrInvalid, err)
	}
	return b, nil
}
