package source

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
)

// leRobot is the part of meta/info.json of a LeRobot dataset, version 2.0 to 3.0, that is used here:
// https://github.com/huggingface/lerobot.
type leRobot struct {
	Version  string `json:"codebase_version"`
	Videos   string `json:"video_path"`
	Features map[string]struct {
		DType string `json:"dtype"`
	} `json:"features"`
}

// maxInfo limits the size of meta/info.json, in bytes.
const maxInfo = 16 << 20

// LeRobot returns the Parquet files of a LeRobot dataset, in the order of its episodes, and a sentence for people
// about its videos. Frames of videos are in separate files and do not become fields. files is nil for any other
// folder.
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
