package flat

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/zarr"
	"github.com/penstock/penstock/tensor"
)

// builder is the variable by which a test runs itself as a process that is recorded.
const builder = "PENSTOCK_STORE_BUILDER"

// create is Create, or that of package zarr where the name says so.
func create(dest string, schema store.Schema, opts Options) (store.Writer, error) {
	if filepath.Ext(dest) != ".zarr" {
		return Create(dest, schema, opts)
	}
	return zarr.Create(dest, schema, zarr.Options{
		ShardBytes: opts.ShardBytes, Overwrite: opts.Overwrite, Append: opts.Append, Splits: opts.Splits, Journal: opts.Journal,
	})
}

// tokenSchema has a ragged field and one of a fixed length, so that there are several shards.
func tokenSchema() store.Schema {
	return store.Schema{Fields: []store.Field{store.NewRagged("tokens", tensor.Int32), store.NewField("labels", tensor.Int64)}}
}

// fillTokens makes record i.
func fillTokens(r *store.Record, i int) {
	r.Values[0] = r.Values[0][:0]
	for k := range i * 37 % 101 {
		r.Values[0] = binary.LittleEndian.AppendUint32(r.Values[0], uint32(i*1000+k))
	}
	binary.LittleEndian.PutUint64(r.Values[1], uint64(i))
}

// crashBuilder is the build whose crashes are tried, where the system lets that be.
var crashBuilder func(dest, kind string) error

// TestMain is the builder, where that is asked for.
func TestMain(m *testing.M) {
	dest := os.Getenv(builder)
	if dest == "" {
		os.Exit(crash.Main(m))
	}
	if err := crashBuilder(dest, os.Getenv(builder+"_CRASH")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// sameFolder compares two datasets, and checks that nothing else is next to dest.
func sameFolder(t *testing.T, dest string, want map[string]string) {
	t.Helper()
	got := foldertest.Files(t, dest)
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: other bytes than those of the build that was not interrupted", name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d files, want %d", len(got), len(want))
	}
	if left, err := os.ReadDir(filepath.Dir(dest)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// trainOrVal spreads records over two splits.
func trainOrVal(i int) string {
	if i%5 == 4 {
		return "val"
	}
	return "train"
}
