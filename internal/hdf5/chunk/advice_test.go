package chunk

import (
	"math"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

func advise(t *testing.T, file []byte, path string) Advice {
	t.Helper()
	d, err := openBytes(t, file).Dataset(path)
	require.NoError(t, err)
	a, err := Advise(d, 32)
	require.NoError(t, err)
	return a
}

func TestAdvise(t *testing.T) {
	file := makeFile(t, `
 f.create_dataset("auto", shape=(1024, 3, 224, 224), dtype="u1", chunks=(128, 1, 28, 28), compression="gzip")
 f.create_dataset("one", data=np.zeros((64, 3, 32, 32), "u1"), chunks=(1, 3, 32, 32), compression="gzip")
 f.create_dataset("many", data=np.zeros((64, 1000), "f4"), chunks=(16, 1000))
 f.create_dataset("flat", data=np.zeros((64, 10), "f4"))
 f.create_dataset("swapped", data=np.zeros((64, 10), ">f4"))
 f.create_dataset("noise", data=np.random.default_rng(1).integers(0, 256, (8, 5000), "u1"), chunks=(1, 5000), compression="gzip")
`)
	a := advise(t, file, "auto")
	if a.PerRecord != 192 || a.ChunkRecords != 128 || a.Amplification != 128 || a.Chunks != 0 || a.Places != 8*192 {
		t.Errorf("auto: %+v", a)
	}
	// 32 records drawn of 1024 touch nearly all of the 8 rows.
	rows := 8 * (1 - math.Pow(7.0/8, 32))
	distinct := 1024 * (1 - math.Pow(1023.0/1024, 32))
	if want := rows * 128 / distinct; math.Abs(a.BatchAmplification-want) > 1e-6*want {
		t.Errorf("auto: a batch reads %v times its bytes, want %v", a.BatchAmplification, want)
	}
	if text := strings.Join(a.Problems, "\n"); !strings.Contains(text, "128 times its bytes") ||
		!strings.Contains(text, "1 MiB that libhdf5") {
		t.Errorf("auto: problems %q", text)
	}
	if a := advise(t, file, "one"); a.Amplification != 1 || math.Abs(a.BatchAmplification-1) > 1e-9 || a.Ratio <= 0 ||
		a.Ratio > 0.1 || a.Smallest > a.Largest || len(a.Problems) != 1 {
		t.Errorf("one: %+v", a)
	}
	if a := advise(t, file, "many"); a.Amplification != 16 || a.Ratio != 1 {
		t.Errorf("many: %+v", a)
	}
	if a := advise(t, file, "flat"); a.Gain() != 1 || len(a.Problems) != 0 || a.Stored != 2560 || a.Bytes != 2560 {
		t.Errorf("flat: %+v", a)
	}
	if a := advise(t, file, "swapped"); len(a.Problems) != 1 || !strings.Contains(a.Problems[0], "swapped") {
		t.Errorf("swapped: %+v", a)
	}
	if text := strings.Join(advise(t, file, "noise").Problems, "\n"); !strings.Contains(text, "save nothing") {
		t.Errorf("noise: problems %q", text)
	}
}

func TestMendCommand(t *testing.T) {
	for _, tt := range [][4]string{
		{"old.h5", "new.h5", "", "penstock preprocess old.h5 new.h5"},
		{"my file.h5", "it's.h5", "", `penstock preprocess 'my file.h5' 'it'\''s.h5'`},
		{"-x.h5", "$y", "a/b=c,d e", `penstock preprocess ./-x.h5 '$y' --fields 'a/b=c,d e'`},
	} {
		if got := ConvertCommand(tt[0], tt[1], tt[2]); got != tt[3] {
			t.Errorf("%q, want %q", got, tt[3])
		}
	}
}
