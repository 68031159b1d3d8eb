package main

import "fmt"

// preparation is a dataset to be prepared, with rates that were measured on one core.
type preparation struct {
	name            string
	records         float64
	in, out         float64 // bytes of a sample, and of its record
	seconds         float64 // of a core for a sample, see docs/scale.md
	merged          float64 // of a core for a record that a merge copies
	samplesAnObject float64
}

// costs prints what it takes to prepare a dataset: the formula is in docs/scale.md.
func costs(s scenario) error {
	const shard, request = 256e6, 8e6
	rows := [][]string{{"dataset", "merge", "core-hours", "GETs", "PUTs and copies", "price of them", "read", "written",
		"peak of the store", "disk of a rank"}}
	for _, p := range []preparation{
		{"1.28 M photos, 224x224 pixels", 1.28e6, 110e3, 150_528, s.photoCost, s.mergePhoto, 1},
		{"1.28 M photos, as they are", 1.28e6, 110e3, 110e3, s.keepCost, s.mergePhoto * 110 / 150.528, 1},
		{"10^9 records of 4 KB, from tar", 1e9, 4096, 4096, s.smallCost, s.mergeSmall, 1e9 / 4096},
	} {
		for _, kept := range []bool{false, true} {
			data, name := p.records*p.out, "copies records"
			reads, writes, core := p.records*p.in, data, p.records*p.seconds
			gets := max(p.records/p.samplesAnObject, reads/request)
			puts := 6*data/shard + data/5e6 // files of three fields with checksums, in parts of 5 MB
			if kept {
				name = "--keep-shards"
				puts += 6 * data / shard
			} else {
				gets, puts = gets+data/request, puts+6*data/shard+data/5e6
				reads, writes, core = reads+data, writes+data, core+p.records*p.merged
			}
			rows = append(rows, []string{
				p.name, name, fmt.Sprintf("%.1f", core/3600), scaled(gets, ""), scaled(puts, ""),
				fmt.Sprintf("$%.2f", gets/1000*s.get+puts/1000*s.list), size(reads), size(writes), size(2 * data),
				size(shard + 1e9),
			})
		}
	}
	table("Preparing a dataset in a bucket (arithmetic, from rates of one core that are flags)", rows)
	return nil
}
