package rank

import (
	"fmt"
	"strings"
	"testing"
)

// environment returns the lookup in NAME=VALUE words.
func environment(text string) Lookup {
	return func(name string) (string, bool) {
		for pair := range strings.FieldsSeq(text) {
			if key, value, _ := strings.Cut(pair, "="); key == name {
				return value, true
			}
		}
		return "", false
	}
}

func TestWork(t *testing.T) {
	const array = "SLURM_ARRAY_TASK_ID=12 SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_MIN=10 SLURM_ARRAY_TASK_MAX=13"
	for _, c := range []struct {
		env  string
		size int
		want string // rank/size, or the error
	}{
		{"", 0, "0/0"},
		{"RANK=3 WORLD_SIZE=8", 0, "3/8"},
		{"RANK=3 WORLD_SIZE=8", 8, "3/8"},
		{"RANK=3 WORLD_SIZE=8", 4, "WORLD_SIZE=8, and not 4"},
		{"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2", 0, "1/2"},
		{"MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_SIZE=2", 0, "1/2"},
		{"PMI_RANK=0 PMI_SIZE=2", 0, "0/2"},
		{"SLURM_PROCID=5 SLURM_NTASKS=6", 0, "5/6"},
		{"SLURM_NTASKS=6", 0, "0/0"},
		{array, 0, "2/4"},
		{array + " SLURM_PROCID=0 SLURM_NTASKS=1", 0, "2/4"},
		{"SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=4", 0, "3/4"},
		{"SLURM_ARRAY_TASK_ID=3", 0, "SLURM_ARRAY_TASK_ID is set, but not SLURM_ARRAY_TASK_COUNT"},
		{"SLURM_ARRAY_TASK_ID=4 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=4", 0, "use one such as --array=0-2"},
		{"JOB_COMPLETION_INDEX=1 JOB_COMPLETIONS=3", 0, "1/3"},
		{"JOB_COMPLETION_INDEX=1", 3, "1/3"},
		{"JOB_COMPLETION_INDEX=1", 0, "JOB_COMPLETION_INDEX is set, but not JOB_COMPLETIONS"},
		{"JOB_COMPLETION_INDEX=3", 3, "a rank is from 0 to size-1"},
		{"AWS_BATCH_JOB_ARRAY_INDEX=1 AWS_BATCH_JOB_ARRAY_SIZE=3", 0, "1/3"},
		{"BATCH_TASK_INDEX=1 BATCH_TASK_COUNT=3", 0, "1/3"},
		{"CLOUD_RUN_TASK_INDEX=1 CLOUD_RUN_TASK_COUNT=3", 0, "1/3"},
		{"CLOUD_RUN_TASK_INDEX=1 CLOUD_RUN_TASK_COUNT=3 RANK=0 WORLD_SIZE=1", 0, "1/3"},
		{"RANK=one WORLD_SIZE=2", 0, `RANK="one" is not a number`},
		{"WORLD_SIZE=2", 0, "WORLD_SIZE is set, but not RANK"},
	} {
		p, err := Work(environment(c.env), c.size)
		got := fmt.Sprintf("%d/%d", p.Rank, p.Size)
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%q with size %d: %s, want %s", c.env, c.size, got, c.want)
		}
		if err == nil && p.Size > 0 && !strings.Contains(p.From, "=") {
			t.Errorf("%q: does not say what it was read from: %+v", c.env, p)
		}
	}
}

// srun inside of a job array trains by srun's numbers.
func TestTrainingPrefersTheProcess(t *testing.T) {
	p, err := Training(environment("SLURM_PROCID=5 SLURM_NTASKS=6 SLURM_NTASKS_PER_NODE=3 SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=2"))
	if err != nil || p.Rank != 5 || p.Size != 6 || p.Local != 3 {
		t.Errorf("%+v, %v", p, err)
	}
}

// Each launcher's number of processes on this host, of its own node where it lists all.
func TestLocal(t *testing.T) {
	for _, c := range []struct {
		env  string
		want int
	}{
		{"", 0},
		{"LOCAL_WORLD_SIZE=8", 8},
		{"OMPI_COMM_WORLD_LOCAL_SIZE=4", 4},
		{"MV2_COMM_WORLD_LOCAL_SIZE=3", 3},
		{"MPI_LOCALNRANKS=5", 5},
		{"PMI_LOCAL_SIZE=6", 6},
		{"SLURM_NTASKS_PER_NODE=8", 8},
		{"SLURM_NTASKS_PER_NODE=8(x2)", 8},
		{"SLURM_STEP_TASKS_PER_NODE=4(x2),2 SLURM_NODEID=0", 4},
		{"SLURM_STEP_TASKS_PER_NODE=4(x2),2 SLURM_NODEID=1", 4},
		{"SLURM_STEP_TASKS_PER_NODE=4(x2),2 SLURM_NODEID=2", 2},
		{"SLURM_STEP_TASKS_PER_NODE=2,4(x2) SLURM_NODEID=3", 4},
		{"SLURM_STEP_TASKS_PER_NODE=2,4(x2) SLURM_NODEID=-1", 4},
		{"SLURM_STEP_TASKS_PER_NODE=2,4(x2)", 4},
		{"SLURM_STEP_TASKS_PER_NODE=2 SLURM_NTASKS_PER_NODE=8", 2},
		{"LOCAL_WORLD_SIZE=8 SLURM_STEP_TASKS_PER_NODE=1", 8},
		{"LOCAL_WORLD_SIZE=0 SLURM_NTASKS_PER_NODE=3", 3},
		{"LOCAL_WORLD_SIZE=many", 0},
		{"SLURM_NTASKS_PER_NODE=8(x", 0},
		{"SLURM_NTASKS_PER_NODE=8(x0)", 0},
		{"SLURM_NTASKS_PER_NODE=8(x99999999999)", 0},
		{"SLURM_NTASKS_PER_NODE=8(x1048577)", 0},
		{"SLURM_NTASKS_PER_NODE=-8", 0},
		{"RANK=0 WORLD_SIZE=4", 0},
	} {
		if got := Local(environment(c.env)); got != c.want {
			t.Errorf("%q: %d, want %d", c.env, got, c.want)
		}
	}
	p, err := Training(environment("SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_NTASKS_PER_NODE=8"))
	if err != nil || p.Local != 2 {
		t.Errorf("%+v, %v; want no more than there are", p, err)
	}
}
