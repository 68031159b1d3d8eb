package loader_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/staged"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// late makes records only when it is flushed, or has some of them: each byte plus one. Records that fail are the multiples of fails.
type late struct {
	together, fails int
	final           bool // a record that fails ends all
	hang            chan struct{}
}

func (t late) Output(in tensor.Spec) (tensor.Spec, error) { return in, nil }

func (t late) Worker(tensor.Spec, int) (loader.RecordFunc, error) {
	return nil, errors.New("Worker was asked for in place of Stage")
}

func (t late) Stage(tensor.Spec, int) (staged.Stage[loader.Record], error) {
	return &lateStage{late: t}, nil
}

type lateStage struct {
	late
	dst, src [][]byte
	records  []int
}

func (s *lateStage) Put(ctx context.Context, dst, src []byte, r loader.Record) error {
	s.dst, s.src, s.records = append(s.dst, dst), append(s.src, append([]byte(nil), src...)), append(s.records, r.Index)
	if len(s.dst) == s.together {
		return s.Flush(ctx)
	}
	return ctx.Err()
}

func (s *lateStage) Flush(context.Context) error {
	defer func() { s.dst, s.src, s.records = nil, nil, nil }()
	if s.hang != nil && len(s.dst) > 0 {
		<-s.hang
	}
	for i, dst := range s.dst {
		if s.fails > 0 && s.records[i]%s.fails == 0 {
			record := s.records[i]
			if s.final {
				record = -1
			}
			return &staged.Error{Record: record, Err: fmt.Errorf("record %d is bad", s.records[i])}
		}
		for k := range dst {
			dst[k] = s.src[i][k] + 1
		}
	}
	return nil
}

func (s *lateStage) Waiting() (int, string) {
	if s.hang == nil {
		return -1, ""
	}
	return 2, "somebody has not returned"
}

// A Stage makes the records that a RecordFunc would, however many it has at a time and whatever fails.
func TestStage(t *testing.T) {
	const records, batch = 60, 8
	for _, workers := range []int{loader.Synchronous, 1, 3} {
		for _, together := range []int{1, 3, 100} {
			for _, policy := range []loader.OnError{loader.Fail, loader.Backfill, loader.Blank} {
				for _, fails := range []int{0, 7} {
					src := newMemorySource(records, 5)
					ld, err := loader.New(src, loader.Options{
						BatchSize: batch, Workers: workers, OnError: policy,
						Transforms: map[string]loader.Transform{"x": late{together: together, fails: fails}},
					})
					require.NoError(t, err)
					seen, failed := 0, error(nil)
					for b, err := range ld.Epoch(t.Context(), 0) {
						if failed = err; err != nil {
							break
						}
						v := b.Field("x")
						for i, record := range b.Indices() {
							row := v.Slice(i, i+1).Bytes()
							want := pixel(record, 0) + 1
							switch bad := fails > 0 && record%fails == 0; {
							case policy == loader.Blank && !b.Mask()[i]:
								want = 0
							case bad || policy == loader.Fail && !b.Mask()[i]:
								t.Fatalf("record %d is present, mask %v", record, b.Mask()[i])
							}
							if row[0] != want {
								t.Errorf("record %d begins with %d, want %d", record, row[0], want)
							}
							seen++
						}
					}
					ld.Close()
					var e *loader.Error
					switch wants := policy == loader.Fail && fails > 0; {
					case wants && (!errors.As(failed, &e) || e.Record != 0 || !strings.Contains(e.Error(), "record 0: field \"x\": transform: record 0 is bad")):
						t.Errorf("workers %d, together %d: %v; want an error of record 0", workers, together, failed)
					case !wants && (failed != nil || seen != records):
						t.Errorf("workers %d, together %d, policy %v: %d records, %v", workers, together, policy, seen, failed)
					}
				}
			}
		}
	}
}

// A Stage that makes nothing any more ends the epoch, whatever OnError says.
func TestStageEnds(t *testing.T) {
	reports := 0
	ld, err := loader.New(newMemorySource(20, 5), loader.Options{
		BatchSize: 4, Workers: 1, OnError: loader.Backfill, Report: func(*loader.Error) { reports++ },
		Transforms: map[string]loader.Transform{"x": late{together: 2, fails: 6, final: true}},
	})
	require.NoError(t, err)
	defer ld.Close()
	for _, err := range ld.Epoch(t.Context(), 0) {
		var e *loader.Error
		if !errors.As(err, &e) || e.Record != -1 || !strings.Contains(err.Error(), "is bad") || reports > 0 {
			t.Errorf("%v, after %d reports", err, reports)
		}
	}
}

// A Stage that hangs is named, with the record that it is at.
func TestStageHangs(t *testing.T) {
	hang := make(chan struct{})
	ld, err := loader.New(newMemorySource(20, 5), loader.Options{
		BatchSize: 4, Workers: 1, Timeout: 20 * time.Millisecond,
		Transforms: map[string]loader.Transform{"x": late{together: 3, hang: hang}},
	})
	require.NoError(t, err)
	for _, err := range ld.Epoch(t.Context(), 0) {
		var e *loader.Error
		if !errors.Is(err, loader.ErrTimeout) || !errors.As(err, &e) || e.Record != 2 || !strings.Contains(err.Error(), "not there after 20ms: somebody has not returned") {
			t.Error(err)
		}
	}
	close(hang)
	ld.Close()
}
