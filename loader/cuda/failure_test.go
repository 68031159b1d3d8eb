//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// scenario uses everything once: two devices, a mapping, normalization, an epoch that is
// left early and one that is not. It goes on where a program would, and returns all errors.
func scenario(src *mappedSource) (r *rig, errs []error) {
	c := config{src: src, devices: 2, loader: loader.Options{BatchSize: 4, Fields: []string{"labels"}, Workers: 1}}
	c.opts = Options{
		Fields: []string{"labels"}, Direct: Direct{Source: src, Fields: []string{"images"}},
		Normalize: map[string]Normalize{"images": {}},
	}
	note := func(err error) bool {
		if err != nil {
			errs = append(errs, err)
		}
		return err == nil
	}
	r, err := c.open()
	if note(err) {
		for epoch := range 2 {
			for b, err := range r.pf.Epoch(context.Background(), epoch) {
				if !note(err) {
					break
				}
				step := b.Step()
				if !note(r.consume(b, "labels")) || epoch == 0 && step == 2 {
					break
				}
			}
		}
	}
	if len(errs) == 0 {
		note(r.check(src.memory))
	}
	note(r.close())
	return r, errs
}

// Whichever call of the driver fails, once or from then on for ever: nothing hangs, nothing
// leaks, no memory is used after it is freed, and the error names a call; or it is one that
// can be done without, and Stats says so.
func TestFailureOfEveryCall(t *testing.T) {
	src := newMappedSource(t, 24, tensor.Shape{2, 3, 4})
	for mode, lazy := range modes {
		for _, sticky := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/sticky=%v", mode, sticky), func(t *testing.T) {
				useFake(t, setting{lazy: lazy, devices: 2})
				calls := int64(1)
				for at := int64(-1); at < calls; at++ {
					within(t, func() { failAt(t, src, lazy, sticky, at) })
					if at < 0 {
						calls = stats().calls
					}
					if t.Failed() {
						t.Fatalf("when call %d of %d fails: %s", at, calls, fakeDriver.failed())
					}
				}
				if calls < 150 {
					t.Errorf("the scenario makes %d calls only", calls)
				}
			})
		}
	}
}

const illegalAddress = 700

func failAt(t *testing.T, src *mappedSource, lazy, sticky bool, at int64) {
	useLazy, once := int32(0), int32(0)
	if lazy {
		useLazy = 1
	}
	if sticky {
		once = 1
	}
	fakeDriver.reset(useLazy, 2, 0, 1)
	fakeDriver.fail(at, illegalAddress, once)
	r, errs := scenario(src)
	fakeDriver.fail(-1, 0, 0)
	failed := fakeDriver.failed()
	if failed == "cuCtxPopCurrent_v2" {
		failed = "" // what the call before it made counts: see Device.pop
	}
	if at >= 0 && failed != "" && len(errs) == 0 && !forgiven(r) {
		t.Errorf("no error at all")
	}
	if at < 0 && len(errs) > 0 {
		t.Errorf("errors without a failure: %v", errs)
	}
	for _, err := range errs {
		var call *Error
		if !errors.As(err, &call) || call.Result != illegalAddress || call.Op == "" {
			t.Errorf("error that names no call: %v", err)
		}
	}
	if n := src.leases.Load(); n != 0 {
		t.Errorf("%d leases of the Source", n)
	}
	noLeak(t)
}

// forgiven reports that the Prefetcher went on without what failed, and says so.
func forgiven(r *rig) bool {
	return r.pf != nil && r.pf.Stats().Direct[0].Reason != ""
}
