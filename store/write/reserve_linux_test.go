package write

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Disk space that was reserved beyond the end of a shard is free when the shard is finished, and
// after a build that resumes from a checkpoint.
func TestReservedRoomIsGivenBack(t *testing.T) {
	schema := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Uint8, 100_000)}}
	dest := filepath.Join(ext4Dir(t), "ds")
	write := func(until int, j *store.Journal) (*Stage, *ShardWriter) {
		s, err := OpenStage(dest, StageOptions{Keep: true})
		require.NoError(t, err)
		b, err := NewShardWriter(s, schema, ShardOptions{Journal: j})
		require.NoError(t, err)
		r := store.NewRecord(schema)
		for i := int(b.Kept().Records); i < until; i++ {
			require.NoError(t, b.Append(r))
			if i == until/2 {
				require.NoError(t, b.Checkpoint(nil))
			}
		}
		return s, b
	}
	s, b := write(45, &store.Journal{})
	require.NoError(t, errors.Join(b.Close(), s.Release()))
	s, b = write(70, &store.Journal{Resume: true})
	defer s.Release()
	defer b.Close()
	if !b.Kept().Resumed {
		t.Error("not resumed")
	}
	if _, err := b.Finish(store.Info{}); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	require.NoError(t, unix.Stat(s.Folder.Path("x-00000.npy"), &st))
	if st.Size != layout.HeaderBytes+70*100_000 || st.Blocks*512 > st.Size+64<<10 { // with what lists its blocks
		t.Errorf("a file of %d bytes takes %d of the disk", st.Size, st.Blocks*512)
	}
}

// ext4Dir returns a folder where room is reserved, or skips the test. Other file systems take room of
// their own beyond the end of a file, or report it later.
func ext4Dir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var fs unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &fs))
	if fs.Type != unix.EXT4_SUPER_MAGIC {
		t.Skip("the folder for temporary files is not on ext4")
	}
	return dir
}

// A file grows by what is asked for, and not in its size.
func TestReserve(t *testing.T) {
	f, err := os.Create(filepath.Join(ext4Dir(t), "f"))
	require.NoError(t, err)
	defer f.Close()
	if got := reserve(f, 8192, 4096); got != 12288 {
		t.Errorf("room up to %d", got)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Size != 0 || st.Blocks == 0 {
		t.Errorf("size %d, %d blocks, %v", st.Size, st.Blocks, err)
	}
	if got := reserve(f, 0, 1<<60); got != math.MaxInt64 {
		t.Errorf("more than there is: room up to %d", got)
	}
}
