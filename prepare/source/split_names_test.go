package source

import (
	"strings"
	"testing"
)

func TestSplitsOfFiles(t *testing.T) {
	for files, want := range map[string]string{
		"d/test-00000-of-00001.parquet d/train-00000-of-00002.parquet d/train-00001-of-00002.parquet": "train=2 test=1",
		"d/imagenet-val-00.tar d/imagenet-train-00.tar d/imagenet-train-01.tar":                       "train=2 val=1",
		"d/Train.csv d/Validation.csv d/test.csv":                                                     "Train=1 Validation=1 test=1",
		"train/0.tar val/0.tar":       "train=1 val=1",
		"d/train-0.tar d/train-1.tar": "", // one split is none
		"d/train.csv d/extra.csv":     "",
		"d/trainer.csv d/latest.csv":  "",
		"d/train_test.csv d/test.csv": "", // which of them is it?
		"d/0.tar d/1.tar":             "",
	} {
		list := strings.Fields(files)
		s := SplitsOfFiles(list)
		var got []string
		for _, name := range s.Names {
			n := 0
			for _, f := range list {
				if s.Of[f] == name {
					n++
				}
			}
			got = append(got, name+"="+string(rune('0'+n)))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: splits %q, want %q", files, got, want)
		}
	}
}
