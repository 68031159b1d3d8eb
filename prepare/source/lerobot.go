package source

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
)

// leRobot is what meta/info.json says of a dataset of LeRobot, version 2.0 to 3.0:
// https://github.com/huggingface/lerobot.
type leRobot struct {
	Version  string `json:"codebase_version"`
	Videos   string `json:"video_path"`
	Features map[string]struct {
		DType string `json:"dtype"`
	} `json:"features"`
}

// maxInfo bounds the file that says what a dataset of LeRobot has.
const maxInfo = 16 << 20

// LeRobot returns the Parquet files of a folder that is a dataset of LeRobot, in the order of its episodes, and a
// sentence for people about its videos, which are no fields. The files are nil of any other folder.
func LeRobot(root *vfs.Root, folder string) (files []string, hint string) {
	var info leRobot
	err := ReadJSON(root, filepath.Join(folder, "meta", "info.json"), "description of LeRobot", maxInfo, &info)
	if err != nil || info.Version == "" {
		return nil, ""
	}
	var videos []string
	for _, name := range slices.Sorted(maps.Keys(info.Features)) {
		if info.Features[name].DType == "video" {
			videos = append(videos, name)
		}
	}
	if videos != nil {
		hint = fmt.Sprintf("videos are no fields: %s; a function of records finds a frame by episode_index and "+
			"timestamp in the files %s of the folder", Enumerate(videos, 5), shell.Line(info.Videos))
	}
	return root.Glob(filepath.Join(folder, "data"), filepath.Join("*", "*.parquet")), hint
}
