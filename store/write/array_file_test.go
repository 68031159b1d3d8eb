package write

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// TestArrayFilePieces writes rows of all kinds of sizes, one and several at a time, with a sync now
// and then, after which pieces begin in the middle; half of the arrays are resumed there. The file has
// the bytes of the rows, and the checksum that it says.
func TestArrayFilePieces(t *testing.T) {
	for _, row := range []int{8, 1000, largeRow - 1, largeRow, 150_528, smallPiece, smallPiece + 1, 3*largePiece + 5} {
		for _, synced := range []bool{false, true} {
			t.Run(fmt.Sprint(row, synced), func(t *testing.T) { testPieces(t, row, synced) })
		}
	}
}

func testPieces(t *testing.T, row int, synced bool) {
	stage, err := OpenStage(filepath.Join(t.TempDir(), "ds"), StageOptions{})
	require.NoError(t, err)
	defer stage.Abort()
	a := newArrayFile(tensor.Spec{DType: tensor.Uint8, Shape: tensor.Shape{row}}, stagedFiles{Folder: stage.Folder})
	require.NoError(t, a.create("rows.npy"))
	rng := rand.New(rand.NewPCG(uint64(row), 1))
	var want []byte
	for i := 0; len(want) < 5*largePiece; i++ {
		b := make([]byte, row*(1+rng.IntN(max(2, 90_000/row))))
		for k := 0; k < len(b); k += 1 + rng.IntN(97) {
			b[k] = byte(rng.IntN(256))
		}
		want = append(want, b...)
		require.NoError(t, a.append(b, layout.CRC32C(b)))
		if synced && i%3 == 0 {
			require.NoError(t, a.sync())
			if i%2 == 0 {
				a = resumed(t, &a, stage)
			}
		}
	}
	crc, _, err := a.close()
	require.NoError(t, err)
	got, err := os.ReadFile(stage.Folder.Path("rows.npy"))
	if err != nil || len(got) < layout.HeaderBytes || !bytes.Equal(got[layout.HeaderBytes:], want) || layout.CRC32C(got) != crc {
		t.Fatalf("%d bytes with CRC32C %08x, want %d and %08x, or others; error %v", len(got), layout.CRC32C(got), layout.HeaderBytes+len(want), crc, err)
	}
}

// resumed returns an array that continues one that was synced.
func resumed(t *testing.T, a *arrayFile, stage *Stage) arrayFile {
	t.Helper()
	a.abandon()
	next := newArrayFile(a.spec, stagedFiles{Folder: stage.Folder})
	require.NoError(t, next.resume("rows.npy", a.rows, a.sums.all()))
	return next
}
