package loadbench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// trialReport measures a trial as quickly as it goes.
func trialReport(t *testing.T, name string) *Report {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	o := Defaults()
	o.Trial, o.Quick = name, true
	r, err := Run(t.Context(), o, silent{})
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if r.Doctor == "" {
		t.Error("it does not end in a sentence")
	}
	return r
}

func TestTrialsOfAccess(t *testing.T) {
	for name, c := range map[string]struct {
		rows, records int
		sentence      string
	}{
		"b6":  {3, 8192, "reading in order takes"},
		"b10": {3, 200_000, "its place is computed"},
		"b11": {1, 32_000, "an epoch of 1,000,000,000 records begins"},
	} {
		r := trialReport(t, name)
		rows := r.Tables[0].Rows
		if len(rows) != c.rows || !strings.Contains(r.Doctor, c.sentence) {
			t.Errorf("%s: %d rows, %q", name, len(rows), r.Doctor)
		}
		for _, row := range rows {
			if row.Records != c.records || row.Total <= 0 || len(row.Waits) != row.Batches || row.Wait.P50 <= 0 {
				t.Errorf("%s: %s: %d records, %d batches in %v", name, row.Name, row.Records, row.Batches, row.Total)
			}
		}
	}
}

func TestTextsAreReadWhole(t *testing.T) {
	rows := trialReport(t, "b6").Tables[0].Rows
	if rows[0].Bytes != rows[1].Bytes || rows[1].Bytes != rows[2].Bytes || rows[0].Bytes < 8192*200*3 {
		t.Errorf("%d, %d and %d bytes", rows[0].Bytes, rows[1].Bytes, rows[2].Bytes)
	}
}

func TestAcceleratorsAreUsedTogether(t *testing.T) {
	defer func(old []model) { models = old }(models)
	models = []model{{"small", 1000, 64, 4, 5 * time.Millisecond, 80, 2, .01, "1 record/s"}, {"never", 1000, 64, 4, time.Microsecond, 80, 1, 1.5, "all"}}
	r := trialReport(t, "b12")
	rows := r.Tables[0].Rows
	if len(rows) != 3 || rows[1].Name != "small, 2 accelerators" || rows[1].Batches != 20 || rows[1].Records != 80 || rows[1].Copied != 80_000 {
		t.Fatalf("%+v", rows)
	}
	for _, row := range rows[:2] {
		if row.Used < .01 || row.Used > 1.2 {
			t.Errorf("%s: used %v", row.Name, row.Used)
		}
	}
	if !strings.HasSuffix(r.Doctor, "small: 2 of 2; never: 0 of 1 that were tried") {
		t.Errorf("%s", r.Doctor)
	}
}

func TestListOfTrials(t *testing.T) {
	var text, asJSON strings.Builder
	if err := listTrials(&text, false); err != nil {
		t.Fatal(err)
	}
	if err := listTrials(&asJSON, true); err != nil {
		t.Fatal(err)
	}
	var list []map[string]string
	if err := json.Unmarshal([]byte(asJSON.String()), &list); err != nil || len(list) != len(trials) {
		t.Fatalf("%v: %d", err, len(list))
	}
	for i := range trials {
		x := &trials[i]
		if list[i]["name"] != x.Name || !strings.Contains(text.String(), "\n     $ "+list[i]["elsewhere"]) {
			t.Errorf("%s is not listed", x.Name)
		}
		if ways := (x.adjust != nil) != (x.measure != nil); ways == (x.Elsewhere != "") {
			t.Errorf("%s is measured in none or several ways", x.Name)
		}
		if x.Source == "" || x.Published == "" || x.Differs == "" {
			t.Errorf("%s does not say whose it is, what was published, or what differs", x.Name)
		}
	}
}

func TestTrialsThatAreNot(t *testing.T) {
	for name, want := range map[string]string{"b99": "there are b1, b2,", "b13": "it is measured by: make bench-peers", "": "there are"} {
		if x, problem := findTrial(name); x != nil || !strings.Contains(problem, want) {
			t.Errorf("%q: %s", name, problem)
		}
	}
	if x, problem := findTrial("B6"); x == nil || problem != "" {
		t.Errorf("B6: %s", problem)
	}
}

func TestMarkdown(t *testing.T) {
	var b strings.Builder
	if err := example().Markdown(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n| progressive-sleep | total |", "\n| --- | ---: |", "\n| + device prefetch | n/a |  |", "\n| guide-sleep | total | speed-up |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	for block := range strings.SplitSeq(b.String(), "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		for _, line := range lines {
			if strings.HasPrefix(line, "|") && strings.Count(line, " | ") != strings.Count(lines[0], " | ") {
				t.Errorf("%q has other columns than %q", line, lines[0])
			}
		}
	}
}
