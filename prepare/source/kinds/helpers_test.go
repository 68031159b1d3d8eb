package kinds

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	npyfile "github.com/penstock/penstock/internal/npy"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

// packed returns an archive of NAME=CONTENT files; "NAME -> TARGET" is a link.
func packed(t testing.TB, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		name, text, _ := strings.Cut(f, "=")
		h := &tar.Header{Name: name, Mode: 0o666, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if from, to, ok := strings.Cut(f, " -> "); ok {
			h, text = &tar.Header{Name: from, Linkname: to, Typeflag: tar.TypeSymlink}, ""
		}
		require.NoError(t, w.WriteHeader(h))
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, w.Close())
	return b.String()
}

// writeTar makes an archive of members that say their names.
func writeTar(t *testing.T, path string, names ...string) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	w := tar.NewWriter(f)
	for _, name := range names {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(name))}))
		if _, err := w.Write([]byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, w.Close())
}

// write makes a file in a new folder.
func write[T string | []byte](t testing.TB, name string, text T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	return path
}

// mustOpen opens a source that is good.
func mustOpen(t testing.TB, path string, opts source.Options) source.Source {
	t.Helper()
	s, err := Open(t.Context(), path, opts)
	require.NoError(t, err)
	return s
}

// describe opens a source and returns its fields, and what every sample is or why it is bad.
func describe(t testing.TB, path string, opts source.Options) (fields, samples []string, err error) {
	t.Helper()
	s, err := Open(t.Context(), path, opts)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	info := s.Info()
	for _, f := range info.Fields {
		fields = append(fields, strings.TrimSpace(fmt.Sprintf("%s %v%v%s %s", f.Name, f.DType, f.Shape, map[bool]string{true: "*"}[f.Ragged], f.Content)))
	}
	v := source.NewValues(len(info.Fields))
	for sample, err := range s.Samples() {
		if err != nil {
			return fields, samples, err
		}
		if err := sample.Data.Read(v); err != nil {
			samples = append(samples, sample.Name+": "+err.Error())
			continue
		}
		text := sample.Name
		for i := range info.Fields {
			text += fmt.Sprintf(" %x", v.Get(i))
		}
		samples = append(samples, text)
	}
	return fields, samples, nil
}

// readAllOf opens a file of that content and reads it to its end. Every sample has the
// values that the source promises.
func readAllOf(t *testing.T, kind, name string, data []byte) {
	t.Helper()
	readAll(t, kind, write(t, name, data))
}

// readAll reads all that a source has, and compares it with what its description promises.
func readAll(t *testing.T, kind, path string) {
	t.Helper()
	readFields(t, path, source.Options{Kind: kind, IsImage: func([]byte) bool { return false }})
}

// readFields is readAll with options.
func readFields(t *testing.T, path string, opts source.Options) {
	t.Helper()
	s, err := Open(t.Context(), path, opts)
	if err != nil {
		return
	}
	defer s.Close()
	info := s.Info()
	v, n := source.NewValues(len(info.Fields)), int64(0)
	for sample, err := range s.Samples() {
		if err != nil {
			return
		}
		n++
		if sample.Data.Read(v) != nil {
			continue
		}
		for i, f := range info.Fields {
			if size := len(v.Get(i)); !f.Ragged && size != f.RecordBytes() || f.Ragged && size%f.RecordBytes() != 0 {
				t.Fatalf("field %s of %v %v has a value of %d bytes", f.Name, f.DType, f.Shape, size)
			}
		}
	}
	if info.Count >= 0 && n != info.Count {
		t.Fatalf("%d samples, but %d were promised", n, info.Count)
	}
}

// npy returns a file with that header dictionary and the given number of bytes of elements.
func npy(version byte, header string, elements int) []byte {
	b := append([]byte(npyfile.Magic), version, 0)
	if version == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	}
	return append(append(b, header...), make([]byte, elements)...)
}

func classesOf(i source.Info) []string {
	for _, f := range i.Fields {
		if f.Classes != nil {
			return f.Classes
		}
	}
	return nil
}
