package loader_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
)

// clearLaunchers removes what the launcher of this test may have set.
func clearLaunchers(t *testing.T) {
	for _, name := range []string{"RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK",
		"MV2_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS",
		"AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE", "BATCH_TASK_INDEX", "BATCH_TASK_COUNT", "CLOUD_RUN_TASK_INDEX", "CLOUD_RUN_TASK_COUNT",
		"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE", "SLURM_STEP_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"} {
		if _, ok := os.LookupEnv(name); ok {
			t.Skip(name + " is set here; this test needs an environment without it")
		}
	}
}

func TestWorldFromEnv(t *testing.T) {
	clearLaunchers(t)
	for _, c := range []struct {
		env  string
		want loader.World
		err  string
	}{
		{"", loader.World{}, ""},
		{"RANK=3 WORLD_SIZE=8 LOCAL_WORLD_SIZE=4", loader.World{Rank: 3, Size: 8, LocalSize: 4}, ""},
		{"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2", loader.World{Size: 2}, ""},
		{"MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_SIZE=2", loader.World{Rank: 1, Size: 2}, ""},
		{"PMI_RANK=1 PMI_SIZE=2", loader.World{Rank: 1, Size: 2}, ""},
		{"SLURM_PROCID=5 SLURM_NTASKS=6 SLURM_NTASKS_PER_NODE=2(x3) SLURM_ARRAY_TASK_ID=4", loader.World{Rank: 5, Size: 6, LocalSize: 2}, ""},
		{"SLURM_NTASKS=6", loader.World{}, ""},
		{"JOB_COMPLETION_INDEX=1 JOB_COMPLETIONS=3", loader.World{Rank: 1, Size: 3}, ""},
		{"AWS_BATCH_JOB_ARRAY_INDEX=1 AWS_BATCH_JOB_ARRAY_SIZE=3", loader.World{Rank: 1, Size: 3}, ""},
		{"BATCH_TASK_INDEX=1 BATCH_TASK_COUNT=3", loader.World{Rank: 1, Size: 3}, ""},
		{"CLOUD_RUN_TASK_INDEX=1 CLOUD_RUN_TASK_COUNT=3", loader.World{Rank: 1, Size: 3}, ""},
		{"RANK=1 WORLD_SIZE=2 SLURM_PROCID=5 SLURM_NTASKS=6", loader.World{Rank: 1, Size: 2}, ""},
		{"RANK=1", loader.World{}, "RANK is set, but not WORLD_SIZE"},
		{"WORLD_SIZE=2", loader.World{}, "WORLD_SIZE is set, but not RANK"},
		{"JOB_COMPLETION_INDEX=1", loader.World{}, "JOB_COMPLETION_INDEX is set, but not JOB_COMPLETIONS"},
		{"RANK=2 WORLD_SIZE=2", loader.World{}, "a rank is from 0 to size-1"},
		{"RANK=x WORLD_SIZE=2", loader.World{}, `RANK="x" is not a number`},
	} {
		t.Run(c.env, func(t *testing.T) {
			for pair := range strings.FieldsSeq(c.env) {
				name, value, _ := strings.Cut(pair, "=")
				t.Setenv(name, value)
			}
			got, err := loader.WorldFromEnv()
			if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v, %v; want %+v, %q", got, err, c.want, c.err)
			}
		})
	}
}

// TestRanksShareTheGlobalBatch puts the batches of all ranks side by side: they are those of
// one process with the global batch, and what is more is not valid.
func TestRanksShareTheGlobalBatch(t *testing.T) {
	for _, c := range []struct{ n, batch, size int }{{96, 4, 8}, {100, 4, 3}, {100, 16, 2}, {101, 4, 8}, {5, 4, 8}, {97, 8, 3}} {
		for _, drop := range []bool{false, true} {
			if drop && c.n < c.batch*c.size {
				continue
			}
			t.Run(fmt.Sprintf("%+v,drop=%v", c, drop), func(t *testing.T) {
				m := newMemorySource(c.n, 3)
				want := visit(t, open(t, m, loader.Options{BatchSize: c.batch * c.size, Sampler: sampler.Shuffle{}, Seed: 2, DropLast: drop}), 1)
				steps := make([][]int, 0)
				var counts []int
				for rank := range c.size {
					o := loader.Options{BatchSize: c.batch, Sampler: sampler.Shuffle{}, Seed: 2, DropLast: drop, Workers: 2, World: loader.World{Rank: rank, Size: c.size}}
					n := 0
					for b, err := range open(t, m, o).Epoch(t.Context(), 1) {
						require.NoError(t, err)
						checkBatch(t, b)
						if b.Step() == len(steps) {
							steps = append(steps, nil)
						}
						for i, r := range b.Indices() {
							if b.Mask()[i] {
								steps[b.Step()] = append(steps[b.Step()], r)
							}
						}
						n += b.Len()
					}
					counts = append(counts, n)
				}
				if got := slices.Concat(steps...); !slices.Equal(got, want) {
					t.Errorf("valid records of all ranks are %v; want %v", got, want)
				}
				if slices.Max(counts) != slices.Min(counts) {
					t.Errorf("ranks have %v records", counts)
				}
			})
		}
	}
}

func TestDefaultWorkersAreARanksShare(t *testing.T) {
	m := newMemorySource(100, 4)
	for local, want := range map[int]int{1: 7, 2: 3, 4: 1, 8: 1} {
		withProcs(8, func() {
			ld := open(t, m, loader.Options{BatchSize: 10, World: loader.World{Size: 16, LocalSize: local}})
			if st := ld.Stats(); st.Workers != want || st.Cores != 8/local || st.LocalSize != local {
				t.Errorf("%d ranks on 8 cores: %d workers on %d cores; want %d", local, st.Workers, st.Cores, want)
			}
		})
	}
}
