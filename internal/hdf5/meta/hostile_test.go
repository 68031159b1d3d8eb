package meta

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// builder makes files with new-format groups of hard links, at most room bytes each; the
// checksums are zero.
type builder struct{ b []byte }

const (
	superblockSize = 48
	groupRoom      = 256
)

func groupAddr(i int) uint64 { return uint64(superblockSize + i*groupRoom) }

// buildGroups makes a file of len(links) groups; group i has the hard links of links[i],
// name to number of the group.
func buildGroups(links []map[string]int) []byte {
	w := &builder{}
	end := groupAddr(len(links))
	w.put(signature, uint8(2), uint8(8), uint8(8), uint8(0), uint64(0), undef, end, groupAddr(0), uint32(0))
	for i, targets := range links {
		var msgs builder
		msgs.put(uint8(msgLinkInfo), uint16(18), uint8(0), uint8(0), uint8(0), undef, undef)
		for name, target := range targets {
			body := 3 + len(name) + 8
			msgs.put(uint8(msgLink), uint16(body), uint8(0), uint8(1), uint8(0), uint8(len(name)), name,
				groupAddr(target))
		}
		w.put("OHDR", uint8(2), uint8(1), uint16(len(msgs.b)), string(msgs.b), uint32(0))
		w.b = append(w.b, make([]byte, int(groupAddr(i+1))-len(w.b))...)
	}
	return w.b
}

// put appends strings as their bytes and numbers in little endian.
func (w *builder) put(fields ...any) {
	for _, f := range fields {
		if s, ok := f.(string); ok {
			w.b = append(w.b, s...)
			continue
		}
		w.b, _ = binary.Append(w.b, binary.LittleEndian, f)
	}
}

// Open says that a file's writer ended before the root group was written, or that its metadata is
// elsewhere. It refuses an unknown message that readers must know.
func TestHeadersOfOthers(t *testing.T) {
	b := buildGroups([]map[string]int{{}})
	clear(b[groupAddr(0):])
	if _, err := exercise(t, b, true); !errors.Is(err, ErrCorrupt) ||
		!strings.Contains(err.Error(), "without closing it") {
		t.Errorf("no root group: error %v", err)
	}
	for _, tt := range []struct {
		addr uint64
		want error
	}{{0x800, ErrUnsupported}, {undef, nil}} {
		c := msgCursor(uint8(0), tt.addr, uint64(100))
		p := &parser{src: c.Src}
		if err := p.cacheImage(message{Data: c.B}); !errors.Is(err, tt.want) || err != nil &&
			!strings.Contains(err.Error(), "h5repack") {
			t.Errorf("image at %x: error %v, want %v", tt.addr, err, tt.want)
		}
	}
	for typ, want := range map[uint16]bool{msgBogus: true, msgLast + 1: true, msgAttribute: false,
		msgCacheImage: false} {
		h := &header{Msgs: []message{{Typ: typ, Flags: flagMustKnow}}}
		if err := h.Unknown(&source{}); errors.Is(err, ErrUnsupported) != want {
			t.Errorf("message 0x%x: error %v", typ, err)
		}
	}
}

// Links in circles end, and say so.
func TestCycle(t *testing.T) {
	b := buildGroups([]map[string]int{{"self": 0, "a": 1}, {"b": 2}, {"up": 1, "root": 0}})
	f, err := exercise(t, b, true)
	require.NoError(t, err)
	want := "superblock 2, user block 0\n/a group\n/a/b group\n/a/b/root loop\n/a/b/up loop\n/self loop\n"
	if got := describe(f); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Thirty groups that each link the next one twice have 2^30 paths.
func TestManyPaths(t *testing.T) {
	var links []map[string]int
	for i := range 30 {
		links = append(links, map[string]int{"a": i + 1, "b": i + 1})
	}
	_, err := exercise(t, buildGroups(append(links, nil)), true)
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "more links than the limit") {
		t.Errorf("error %v, want that of the limit", err)
	}
}

func TestDeep(t *testing.T) {
	chain := func(n int) []byte {
		var links []map[string]int
		for i := range n {
			links = append(links, map[string]int{"g": i + 1})
		}
		return buildGroups(append(links, nil))
	}
	if _, err := exercise(t, chain(maxDepth-1), true); err != nil {
		t.Errorf("%d groups deep: %v", maxDepth-1, err)
	}
	_, err := exercise(t, chain(maxDepth), true)
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "nested more than") {
		t.Errorf("error %v, want that of the limit", err)
	}
}

func TestBadNames(t *testing.T) {
	for _, name := range []string{"", ".", "a/b", "a\x00"} {
		_, err := exercise(t, buildGroups([]map[string]int{{name: 1}, nil}), true)
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("link %q: error %v, want ErrCorrupt", name, err)
		}
	}
}

func TestNotHDF5(t *testing.T) {
	for _, b := range []string{"", "x", signature[:7], strings.Repeat("PK\x03\x04", 1000)} {
		if _, err := Open(strings.NewReader(b), int64(len(b))); !errors.Is(err, ErrNotHDF5) {
			t.Errorf("%.10q: error %v, want ErrNotHDF5", b, err)
		}
	}
}

// A user block may have been added to a file whose superblock does not mention it.
func TestLateUserBlock(t *testing.T) {
	b := buildGroups([]map[string]int{{"a": 1}, nil})
	f, err := exercise(t, append(make([]byte, 1024), b...), true)
	require.NoError(t, err)
	if got := f.Root.Links[0].Group.HeaderAt; f.Superblock.Base != 1024 || got != 1024+int64(groupAddr(1)) {
		t.Errorf("base %d, group at %d", f.Superblock.Base, got)
	}
}

// failing is a disk that fails to read after the first bytes.
type failing struct {
	*bytes.Reader
	from int64
}

var errDisk = errors.New("disk on fire")

func (r failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > r.from {
		return 0, errDisk
	}
	return r.Reader.ReadAt(p, off)
}

// An error of the reader is not taken for a corrupt file.
func TestReadError(t *testing.T) {
	for name, b := range smallFiles(t) {
		for _, from := range []int64{0, 40, 100, 250} {
			_, err := Open(failing{bytes.NewReader(b), from}, int64(len(b)))
			if !errors.Is(err, errDisk) || errors.Is(err, ErrCorrupt) {
				t.Errorf("%s: error %v, want that of the reader", name, err)
			}
		}
	}
}

func TestErrorText(t *testing.T) {
	b := smallFiles(t)["small-new-basic.h5"]
	f, err := exercise(t, b, false)
	require.NoError(t, err)
	d, err := f.Dataset("/g/u1")
	require.NoError(t, err)
	bad := bytes.Clone(b)
	bad[d.HeaderAt+20] ^= 1
	_, err = Open(bytes.NewReader(bad), int64(len(bad)))
	want := fmt.Sprintf(`hdf5: "/again": object header at 0x%x: checksum is `, d.HeaderAt)
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), ": corrupt") {
		t.Errorf("error %v, want %s...: corrupt", err, want)
	}
	_, err = Open(bytes.NewReader(b[:5000]), 5000)
	want = fmt.Sprintf("hdf5: superblock at 0x200: truncated: data ends at byte %d, but the file has 5000 bytes: corrupt",
		len(b))
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
