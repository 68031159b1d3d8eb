package gomlxds

import (
	"context"
	"fmt"
	"sync"

	"github.com/gomlx/gomlx/ml/train"
)

// pipeline makes the batches of one Iter before its consumer needs them. Each batch has a channel
// of its own; queue has those channels in order.
type pipeline struct {
	d      *Dataset
	ctx    context.Context
	cancel context.CancelFunc
	jobs   chan job
	queue  chan chan result
	wg     sync.WaitGroup
}

type job struct {
	at  position
	out chan result // has room for the one result
}

type result struct {
	at    position
	batch train.Batch
	err   error
}

func (d *Dataset) start(from position) *pipeline {
	p := &pipeline{
		d:    d,
		jobs: make(chan job),
		// One more is with the consumer, and one may be on its way into the queue.
		queue: make(chan chan result, d.prefetch+d.workers-1),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.wg.Go(func() { p.dispatch(from) })
	for range d.workers {
		p.wg.Go(p.work)
	}
	return p
}

// dispatch hands out positions, in order.
func (p *pipeline) dispatch(at position) {
	defer close(p.queue)
	defer close(p.jobs)
	for n := p.d.ld.Batches(at.epoch); ; at.step++ {
		if at.step >= n {
			if n = p.d.ld.Batches(at.epoch + 1); !p.d.config.Endless {
				return
			}
			at = position{epoch: at.epoch + 1}
		}
		j := job{at, make(chan result, 1)}
		if n == 0 {
			j.out <- result{at: at, err: fmt.Errorf("gomlxds: epoch %d has no batches", at.epoch)}
			p.enqueue(j)
			return
		}
		if !p.enqueue(j) {
			return
		}
		select {
		case p.jobs <- j:
		case <-p.ctx.Done():
			return
		}
	}
}

func (p *pipeline) enqueue(j job) bool {
	select {
	case p.queue <- j.out:
		return true
	case <-p.ctx.Done():
		return false
	}
}

// work fills batches until there are no more.
func (p *pipeline) work() {
	f := filler{d: p.d}
	var err error
	if f.from, err = p.d.ld.BatchFiller(); err != nil {
		err = fmt.Errorf("gomlxds: %w", err)
	}
	for j := range p.jobs {
		r := result{at: j.at, err: err}
		if err == nil {
			r.batch, r.err = f.fill(p.ctx, j.at)
		}
		j.out <- r
	}
}

// next returns the batch that comes next, and whether there was one.
func (p *pipeline) next() (result, bool) {
	out, ok := <-p.queue
	if !ok {
		return result{}, false
	}
	return <-out, true
}

// stop ends the goroutines and frees the batches that nobody took.
func (p *pipeline) stop() {
	p.cancel()
	p.wg.Wait()
	for out := range p.queue {
		select {
		case r := <-out:
			if r.err == nil {
				_ = r.batch.Finalize() // memory that could not be freed is the collector's
			}
		default:
		}
	}
}
