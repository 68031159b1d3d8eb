package hdf5

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// structure has all bytes of a staged file except rows and checksums: the metadata that the container has written, and
// that it changes when it completes the file. The journal keeps it, so that an interrupted completion can be undone.
type structure struct {
	Size  int64 `json:"size"` // of the file
	Parts []gap `json:"parts"`
}

// gap is a range of bytes between the columns of a file.
type gap struct {
	At    int64  `json:"at"`
	Bytes []byte `json:"bytes"`
}

// structure reads the structure of the file.
func (s *staged) structure() (json.RawMessage, error) {
	info, err := s.file.Stat()
	if err != nil {
		return nil, pathless(err)
	}
	out := structure{Size: info.Size()}
	at := int64(0)
	for _, c := range s.columns() {
		if err := out.read(s.file, at, c.start); err != nil {
			return nil, err
		}
		at = c.start + c.room
	}
	if err := out.read(s.file, at, out.Size); err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// columns returns the columns that have a place in the file, in the order of their places.
func (s *staged) columns() (list []*column) {
	for i := range s.arrays {
		for _, c := range []*column{&s.arrays[i].values, &s.arrays[i].sums} {
			if c.room > 0 {
				list = append(list, c)
			}
		}
	}
	slices.SortFunc(list, func(a, b *column) int { return cmp.Compare(a.start, b.start) })
	return list
}

// read adds the bytes between two places, if there are any.
func (s *structure) read(f *os.File, from, to int64) error {
	if from >= to {
		return nil
	}
	g := gap{from, make([]byte, to-from)}
	if _, err := f.ReadAt(g.Bytes, from); err != nil {
		return pathless(err)
	}
	s.Parts = append(s.Parts, g)
	return nil
}

// putBack durably restores the structure of the file in a stage, which its container may have been completing when the
// process was killed. The rows stay as they are.
func putBack(stage *write.Stage, state json.RawMessage) error {
	var s structure
	if err := json.Unmarshal(state, &s); err != nil {
		return fmt.Errorf("the structure of the file: %v: %w", err, store.ErrCorrupt)
	}
	f, err := stage.Folder.Reopen(stagedName) // the file may be read-only, as it was about to be published
	if err != nil {
		return pathless(err)
	}
	defer f.Close()
	for _, g := range s.Parts {
		if g.At < 0 || int64(len(g.Bytes)) > s.Size-g.At {
			return fmt.Errorf("the structure of the file: %d bytes at %d of %d: %w", len(g.Bytes), g.At, s.Size,
				store.ErrCorrupt)
		}
		if _, err := f.WriteAt(g.Bytes, g.At); err != nil {
			return pathless(err)
		}
	}
	if err := f.Truncate(s.Size); err != nil {
		return pathless(err)
	}
	return pathless(f.Sync())
}
