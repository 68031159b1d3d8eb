package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// goldenBatches are the batches that one process of several gets in an epoch.
type goldenBatches struct {
	N       int     `json:"n"`
	Batch   int     `json:"batch"` // of each process
	Seed    uint64  `json:"seed"`
	Epoch   int     `json:"epoch"`
	Rank    int     `json:"rank"`
	World   int     `json:"world"`
	Drop    bool    `json:"drop"`
	Batches [][]int `json:"batches"`
}

// allBatches are epochs whose last batch is full, is not, and cannot be divided evenly.
func allBatches() ([]goldenBatches, error) {
	var out []goldenBatches
	for _, n := range []int{24, 25, 29, 3} {
		for _, world := range []int{1, 2, 3} {
			for rank := range world {
				for _, drop := range []bool{false, true} {
					g := goldenBatches{N: n, Batch: 4, Seed: 5, Epoch: 6, Rank: rank, World: world, Drop: drop}
					if drop && n < g.Batch*world {
						continue
					}
					if err := g.fill(); err != nil {
						return nil, err
					}
					out = append(out, g)
				}
			}
		}
	}
	return out, nil
}

func (g *goldenBatches) fill() error {
	ld, err := loader.New(numbers(g.N), loader.Options{
		BatchSize: g.Batch, Sampler: sampler.Shuffle{}, Seed: g.Seed, DropLast: g.Drop, World: loader.World{Rank: g.Rank, Size: g.World},
	})
	if err != nil {
		return err
	}
	defer ld.Close()
	for b, err := range ld.Epoch(context.Background(), g.Epoch) {
		if err != nil {
			return fmt.Errorf("%+v: %w", g, err)
		}
		g.Batches = append(g.Batches, slices.Clone(b.Indices()))
	}
	return nil
}

// numbers is a Source of that many records of one byte.
type numbers int

func (n numbers) Len() int { return int(n) }

func (numbers) Specs() []tensor.Spec { return []tensor.Spec{{Name: "x", DType: tensor.Uint8}} }

func (n numbers) Slice(_ string, a, b int) (tensor.View, error) {
	return tensor.Of(n.Specs()[0], b-a, make([]byte, b-a)), nil
}

func (numbers) Gather(context.Context, string, []int, []byte) error { return nil }

func (numbers) Prefetch(string, int, int) error { return nil }

func (numbers) Retain() error { return nil }

func (numbers) Release() {}
