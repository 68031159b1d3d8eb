// Package kubernetes holds manifests, and a test that reads them as Kubernetes does.
package kubernetes

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// job reads a manifest; a key that Kubernetes does not know, or a value of another type, is
// an error.
func job(t *testing.T, name string) *batch.Job {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	j := new(batch.Job)
	if err := yaml.UnmarshalStrict(text, j); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if j.APIVersion != "batch/v1" || j.Kind != "Job" || j.Name == "" || len(j.Spec.Template.Spec.Containers) != 1 {
		t.Errorf("%s: %s %s %q", name, j.APIVersion, j.Kind, j.Name)
	}
	if j.Spec.Template.Spec.RestartPolicy != core.RestartPolicyNever {
		t.Errorf("%s: restart policy %q", name, j.Spec.Template.Spec.RestartPolicy)
	}
	return j
}

func TestIndexedJob(t *testing.T) {
	j := job(t, "preprocess.yaml")
	s := j.Spec
	if s.CompletionMode == nil || *s.CompletionMode != batch.IndexedCompletion || s.Completions == nil || s.BackoffLimitPerIndex == nil {
		t.Fatalf("no Indexed Job with a limit for each index: %+v", s)
	}
	total := ""
	for _, e := range s.Template.Spec.Containers[0].Env {
		if e.Name == "JOB_COMPLETIONS" {
			total = e.Value
		}
	}
	if total != strconv.Itoa(int(*s.Completions)) {
		t.Errorf("JOB_COMPLETIONS is %q, completions %d", total, *s.Completions)
	}
	for _, rule := range s.PodFailurePolicy.Rules {
		if rule.OnExitCodes == nil || *rule.OnExitCodes.ContainerName != s.Template.Spec.Containers[0].Name {
			t.Errorf("a rule for another container: %+v", rule)
		}
	}
}

func TestMergeJob(t *testing.T) {
	if j := job(t, "merge.yaml"); j.Spec.Completions != nil || j.Spec.CompletionMode != nil {
		t.Errorf("one pod merges: %+v", j.Spec)
	}
}

// The pods' shell script ends with the code of preprocess, but well where that says that
// samples were left out; and it runs, with a program in its place that prints its arguments.
func TestScripts(t *testing.T) {
	for _, name := range []string{"preprocess.yaml", "merge.yaml"} {
		c := job(t, name).Spec.Template.Spec.Containers[0]
		for code, want := range map[int]int{0: 0, 1: 1, 2: 2, 3: 0} {
			dir := t.TempDir()
			program := "#!/bin/sh\necho \"$@\"\nexit " + strconv.Itoa(code) + "\n"
			if err := os.WriteFile(filepath.Join(dir, "preprocess"), []byte(program), 0o755); err != nil {
				t.Fatal(err)
			}
			script := strings.ReplaceAll(c.Args[0], "/spool/", dir+"/")
			cmd := exec.Command(c.Command[0], append(slices.Clone(c.Command[1:]), script)...)
			cmd.Env = []string{"PATH=" + dir + ":/bin:/usr/bin"}
			for _, e := range c.Env {
				cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
			}
			out, err := cmd.Output()
			if got := cmd.ProcessState.ExitCode(); got != want {
				t.Errorf("%s: ends with %d where preprocess ends with %d: %v", name, got, code, err)
			}
			if !strings.Contains(string(out), "s3://lab/datasets/photos?region=eu-central-1") {
				t.Errorf("%s: runs preprocess %s", name, out)
			}
		}
	}
}
