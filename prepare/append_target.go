package prepare

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/commit/upload"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/store/write/bucket"
)

// appendTarget is a flat dataset in a bucket that is appended to. The new shards are built in the local folder
// Config.Dest.
type appendTarget struct {
	home     *bucket.Home
	manifest *store.Manifest
	path     string // of the dataset in the mounted bucket
}

func openAppendTarget(b *upload.Buckets, d *upload.Destination, format string) (to *appendTarget, err error) {
	to = &appendTarget{home: bucket.New(d.Context, d.Client.Bucket(), d.URL.Key, "")}
	to.manifest, err = to.home.Folder().Manifest("")
	switch {
	case errors.Is(err, fs.ErrNotExist) && !to.home.IsObject():
		return nil, fmt.Errorf("%s does not exist, so nothing can be appended to it; create it first, without --append: %w",
			d.URL, fs.ErrNotExist)
	case errors.Is(err, fs.ErrNotExist) || err == nil && to.manifest.Metadata != nil || format != part.Flat:
		return nil, fmt.Errorf("--append: %s is not a flat dataset, and in a bucket only these are appended to; make one of "+
			"it: %s: %w", d.URL, shell.Rewrite(d.URL.String(), ""), store.ErrUnsupported)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", d.URL, err)
	}
	to.path, err = b.Mount(d.Text)
	return to, err
}

// dropLeft removes what an earlier run has left at dest, in the spool. With resume it stays, unless that run has
// committed its records already: they would be appended twice.
func (to *appendTarget) dropLeft(dest string, resume bool) error {
	if resume {
		_, err := write.DiscardCommitted(to.home, dest)
		return err
	}
	stage, err := write.OpenStage(dest, write.StageOptions{})
	if err != nil {
		return err
	}
	return stage.Abort()
}

// sendSkipped sends the list of samples that were left out, or removes the list of an earlier run.
func sendSkipped(d *upload.Destination, list string) error {
	key := d.URL.Key + ".skipped.jsonl"
	text, err := os.ReadFile(list)
	if errors.Is(err, fs.ErrNotExist) {
		if err := d.Client.Delete(d.Context, key); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err != nil {
		return err
	}
	return d.Client.WriteAll(d.Context, key, text, remote.WriteOptions{})
}
