package prepare

import (
	"bytes"
	"fmt"
	"iter"
	"time"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
)

// resume returns the samples that remain: all samples, or the samples after the last sample that an earlier run
// completed. It takes over the log of that run. The names of the completed samples must not have changed since then:
// otherwise records of two different sources would be in one dataset.
func (r *run) resume(w store.Writer) (iter.Seq2[source.Sample, error], error) {
	kept := w.Kept()
	if !kept.Resumed {
		return r.src.Samples(), nil
	}
	done, names, err := r.log.restore(kept.Notes)
	r.resumed = kept.Records
	if r.producer != nil {
		return r.rest(done), err
	}
	return func(yield func(source.Sample, error) bool) {
		left := done
		for sample, err := range r.src.Samples() {
			if left > 0 && err == nil {
				r.log.pass(sample.Name)
				if left--; left == 0 && !bytes.Equal(r.log.names.Sum(nil), names) {
					err = fmt.Errorf("cannot resume: the source is another one than before among its first %d samples; start over "+
						"without --resume", done)
				} else {
					continue
				}
			}
			if !yield(sample, err) || err != nil {
				return
			}
		}
		if left > 0 {
			yield(source.Sample{}, fmt.Errorf("cannot resume: the source has fewer samples than the %d that were done before; "+
				"start over without --resume", done))
		}
	}, err
}

// checkpointer makes checkpoints at intervals.
type checkpointer struct {
	run   *run
	w     store.Writer
	every time.Duration
	last  time.Time
}

// checkpoints is the least time between two checkpoints, as each waits for the disk. A checkpoint comes sooner if many
// contents are new, as its note lists all new contents.
const (
	checkpoints   = 10 * time.Second
	notedContents = 1 << 18
)

func newCheckpointer(r *run, w store.Writer) *checkpointer {
	every := checkpoints
	if r.Checkpoint > 0 {
		every = r.Checkpoint
	}
	return &checkpointer{r, w, every, time.Now()}
}

// now makes a checkpoint if it is time.
func (k *checkpointer) now() error {
	if time.Since(k.last) < k.every && k.run.log.pending() < notedContents {
		return nil
	}
	return k.save()
}

// save makes a checkpoint. The note of the log and the state of the writer are one entry of the journal, so that the
// log and the records that a resumed run finds belong together.
func (k *checkpointer) save() error {
	note, err := k.run.log.note()
	if err != nil {
		return err
	}
	if err := k.w.Checkpoint(note); err != nil {
		return err
	}
	k.last = time.Now()
	k.run.kept = k.run.log.records()
	return nil
}
