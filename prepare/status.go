package prepare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/commit/upload"
)

// RankState is the state of a rank.
type RankState string

// States of ranks. Complete and missing ones are only counted and listed by number.
const (
	Running RankState = "running"
	Failed  RankState = "failed"
	Stopped RankState = "stopped" // without a sign of life
)

// RunStatus is the progress of the ranks of a dataset, and the output of --json; keys are added but not changed.
type RunStatus struct {
	Parts     string       `json:"parts"` // the folder
	WorldSize int          `json:"world_size"`
	Complete  int          `json:"complete"`
	Running   int          `json:"running"`
	Failed    int          `json:"failed"`
	Stopped   int          `json:"stopped"`
	Missing   []int        `json:"missing"`            // ranks that have no part and that no process makes or has begun
	Samples   int64        `json:"samples"`            // of the source; -1: not known yet
	Done      int64        `json:"samples_done"`       // of complete parts, and of those that are being made
	Rate      float64      `json:"samples_per_second"` // of all running ranks
	Left      float64      `json:"seconds_left"`       // -1: not known
	Ranks     []RankStatus `json:"ranks"`              // that have no part yet, and a process that has begun one
}

// RankStatus is one that is being made, or was begun.
type RankStatus struct {
	Rank    int       `json:"rank"`
	State   RankState `json:"state"`
	Host    string    `json:"host"`
	Samples int64     `json:"samples"`
	Of      int64     `json:"of"` // -1: not known yet
	Rate    float64   `json:"samples_per_second"`
	Silent  float64   `json:"seconds_silent"` // since its last sign, by the clocks of both hosts
	Error   string    `json:"error,omitempty"`
}

// ReadStatus reads the status of the dataset that will be at dest, which may be in a bucket.
func ReadStatus(ctx context.Context, dest string, now time.Time) (*RunStatus, error) {
	b := &upload.Buckets{Context: ctx, Warn: func(string) {}}
	defer b.Close()
	folder := part.Folder(dest)
	if upload.InBucket(dest) {
		path, query, options := strings.Cut(dest, "?")
		if folder = strings.TrimSuffix(path, "/") + ".parts"; options {
			folder += "?" + query
		}
	}
	path, err := b.Mount(folder)
	if err != nil {
		return nil, b.Explain(err)
	}
	s, err := readStatus(path, now)
	if err != nil {
		return nil, b.Explain(err)
	}
	s.Parts = b.Text(path)
	return s, nil
}

func readStatus(folder string, now time.Time) (*RunStatus, error) {
	entries, err := vfs.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil, fmt.Errorf("%s: there are no parts; every rank builds one: %s", folder,
			shell.Penstock("preprocess SOURCE DEST --rank R --world-size N"))
	}
	if err != nil {
		return nil, err
	}
	parts, signs, err := readAll(folder, entries)
	if err != nil {
		return nil, err
	}
	return summarizeRanks(folder, parts, signs, now)
}

// readers is how many files are read at a time: in a bucket each takes its round trip.
const readers = 32

// readAll reads the files of parts and signs. One that is removed meanwhile is left out.
func readAll(folder string, entries []fs.DirEntry) (parts []*part.Part, signs []*part.Sign, err error) {
	var mu sync.Mutex
	var all errgroup.Group
	all.SetLimit(readers)
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		isSign := part.IsSign(e.Name())
		if !ok || !isSign && !strings.HasPrefix(name, "part-") {
			continue
		}
		all.Go(func() error {
			var p *part.Part
			var s *part.Sign
			var failure error
			if isSign {
				s, failure = part.ReadSign(filepath.Join(folder, e.Name()))
			} else {
				p, failure = part.Read(filepath.Join(folder, name))
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(failure, fs.ErrNotExist):
			case failure != nil:
				return failure
			case isSign:
				signs = append(signs, s)
			default:
				parts = append(parts, p)
			}
			return nil
		})
	}
	err = all.Wait()
	return parts, signs, err
}

// summarizeRanks puts together what is known of the ranks of one world size.
func summarizeRanks(folder string, parts []*part.Part, signs []*part.Sign, now time.Time) (*RunStatus, error) {
	s := &RunStatus{Samples: -1, Left: -1, Missing: []int{}, Ranks: []RankStatus{}}
	complete := make(map[int]bool)
	size := func(n int) error {
		if s.WorldSize != 0 && s.WorldSize != n {
			return fmt.Errorf("%s: has parts of %d and of %d ranks; remove those that you do not need", folder, s.WorldSize, n)
		}
		s.WorldSize = n
		return nil
	}
	for _, p := range parts {
		if err := size(p.Plan.Size); err != nil {
			return nil, err
		}
		complete[p.Rank] = true
		s.Samples, s.Done = p.Plan.Source.Samples, s.Done+p.To-p.From
	}
	s.Complete = len(complete)
	ranks := make(map[int]RankStatus)
	for _, sign := range signs {
		if complete[sign.Rank] {
			continue // of a process that was killed, or made it twice
		}
		if err := size(sign.Size); err != nil {
			return nil, err
		}
		r := rankOf(sign, now)
		if old, ok := ranks[r.Rank]; !ok || better(r, old) {
			ranks[r.Rank] = r
		}
	}
	if s.WorldSize == 0 {
		return nil, fmt.Errorf("%s: there are no parts; every rank builds one: %s", folder,
			shell.Penstock("preprocess SOURCE DEST --rank R --world-size N"))
	}
	for _, r := range ranks {
		s.Ranks = append(s.Ranks, r)
	}
	slices.SortFunc(s.Ranks, func(a, b RankStatus) int { return a.Rank - b.Rank })
	for rank := range s.WorldSize {
		if _, begun := ranks[rank]; !begun && !complete[rank] {
			s.Missing = append(s.Missing, rank)
		}
	}
	s.count()
	return s, nil
}

// count counts the ranks by state, and estimates the time to go.
func (s *RunStatus) count() {
	for _, r := range s.Ranks {
		switch r.State {
		case Running:
			s.Running++
			s.Rate += r.Rate
			s.Done += r.Samples
		case Failed:
			s.Failed++
		case Stopped:
			s.Stopped++
		}
	}
	switch left := s.Samples - s.Done; {
	case s.Complete == s.WorldSize:
		s.Left = 0
	case s.Samples >= 0 && s.Rate > 0:
		s.Left = float64(max(0, left)) / s.Rate
	}
}

// rankOf tells the state of a rank from its sign of life. A rank that was silent for longer than part.SignLasts counts
// as stopped; clocks of machines differ, so a sign from the future counts as now.
func rankOf(sign *part.Sign, now time.Time) RankStatus {
	r := RankStatus{Rank: sign.Rank, State: Running, Host: sign.Host, Samples: sign.Samples, Of: sign.Of, Error: sign.Error}
	r.Silent = max(0, now.Sub(sign.Time).Seconds())
	switch {
	case r.Error != "":
		r.State = Failed
	case r.Silent > part.SignLasts.Seconds():
		r.State = Stopped
	case sign.Of < 0:
		r.Samples = 0 // it looks at the source
	case sign.Seconds > 0:
		r.Rate = float64(sign.Here) / sign.Seconds
	}
	return r
}

// better reports whether a says more of a rank than b: a process that runs, and then the last one.
func better(a, b RankStatus) bool {
	if (a.State == Running) != (b.State == Running) {
		return a.State == Running
	}
	return a.Silent < b.Silent
}
