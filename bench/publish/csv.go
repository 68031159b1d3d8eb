package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// csv returns the tables by the file that each has: the program, and its first head.
func (r results) csv() (map[string]string, error) {
	files := make(map[string]string)
	for program, result := range r {
		for _, t := range result.tables {
			name := program + "-" + slug(t.head()) + ".csv"
			if files[name] != "" {
				return nil, fmt.Errorf("%s has two tables %q", program, t.head())
			}
			var b strings.Builder
			w := csv.NewWriter(&b)
			if err := w.WriteAll(t.cells); err != nil {
				return nil, err
			}
			files[name] = b.String()
		}
	}
	return files, nil
}

// write writes the tables into a folder, in place of those that it has.
func (r results) write(folder string) error {
	files, err := r.csv()
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(folder, "*.csv"))
	errs := []error{err, os.MkdirAll(folder, 0o755)}
	for _, path := range old {
		if _, ok := files[filepath.Base(path)]; !ok {
			errs = append(errs, os.Remove(path))
		}
	}
	for name, text := range files {
		errs = append(errs, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
	return errors.Join(errs...)
}

var notSlug = regexp.MustCompile("[^a-z0-9]+")

func slug(head string) string {
	return strings.Trim(notSlug.ReplaceAllString(strings.ToLower(strings.ReplaceAll(head, ",", "")), "-"), "-")
}
