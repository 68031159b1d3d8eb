package penstock

import "github.com/spf13/cobra"

// topics returns the help topics: pages of penstock help about things that several commands share.
// Cobra takes a command without a Run function for a topic.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "formats", Short: "Help on the formats of datasets: flat, HDF5 and Zarr", Long: formats},
		{Use: "fields", Short: "Help on --fields: the columns to read, and their types", Long: fields},
		{Use: "urls", Short: "Help on URLs: buckets, HDFS, web servers and the Hugging Face Hub", Long: urls},
		{Use: "pipelines", Short: "Help on --pipeline: files of transforms", Long: pipelines},
	}
}

const formats = `DEST names the format of a dataset. All three store the same records in the same order, and
penstock preprocess DATASET DEST turns each into the others.

  out/ds       flat: a folder of .npy files and manifest.json, which
               training maps. For one machine, or a bucket.
  out/ds.h5    HDF5: one file, .h5, .hdf5 or .hdf, for h5py and MATLAB. Records
               are mapped; --compress gzip makes the file smaller.
  out/ds.zarr  Zarr 3 in shards, for zarr-python, xarray and dask.

Readers without penstock:
  numpy.load("out/ds/images-00000.npy", mmap_mode="r")
  h5py.File("out/ds.h5")["images"]
  zarr.open("out/ds.zarr")["images"]

--keep-encoded stores image files as they are, in any of the formats; the loader decodes them.`

const fields = `--fields 'COLUMN=FIELD:TYPE,...' chooses the columns, arrays or members of a source,
names the fields of the dataset and gives their types. =FIELD and :TYPE are optional. Columns not
listed are dropped.

  image          a path, relative to the table          'file=images:image'
  images         a list of paths                         'photos=images:images'
  base64         an image in base64                      'jpeg=images:base64'
  label          a class: a word or its number           'species=labels:label'
  text           UTF-8 of any length                     'caption:text'
  int64          one number; also bool, int8 to uint64,  'id:int64'
                 float16, float32, float64, bfloat16
  float32[4]     an array of one shape                   'emb:float32[512]'
  int64[*]       a list of any length                    'tokens:int64[*]'
  float32[*,4]   any number of rows                      'quads:float32[*,4]'
  mask           the path of a mask                      'seg=mask:mask'
  boxes          rows of left, top, right, bottom; also  'bbox=boxes:boxes'
                 boxes[xywh], boxes[cxcywh,relative]
  keypoints[17]  17 points of x, y and visibility        'pose:keypoints[17]'
  hwc            pixels of an array, (H, W, C); also     'agentview:hwc'
                 chw; for shapes that do not show it

Join columns with + or a glob:         'age+height+lab_*=x:float32,outcome:label'
Quote names that contain a comma:      '"PRICE, EUR"=price:float32'

Without --fields, a pass over the source finds the types, and preprocess prints them before the work
starts. penstock inspect SOURCE prints them alone.`

const urls = `SOURCE, DEST and DATASET can be URLs. Options follow a question mark.

  s3://BUCKET/KEY?region=eu-west-1    credentials as the AWS tools find them
  s3://BUCKET/KEY?endpoint=URL&use_path_style=true&region=us-east-1
                                      MinIO and other servers
  gs://BUCKET/KEY                     application default credentials
  azblob://CONTAINER/KEY              AZURE_STORAGE_ACCOUNT, _KEY, _SAS_TOKEN
  hdfs://NAMENODE:8020/PATH           HADOOP_CONF_DIR, HADOOP_USER_NAME
  https://HOST/PATH                   reads only; needs range requests
  hf://datasets/OWNER/NAME@REV/PATH   reads only; HF_TOKEN, or hf auth login

Training keeps fetched records in --cache-dir, at most --cache-size bytes of them.
Do not put credentials into URLs. Errors name the region, the endpoint and where credentials came
from.`

const pipelines = `--pipeline FILE replaces --resize, --crop and the other flags of pixels by a list of transforms, in
YAML or JSON, with torchvision's names and parameters:

  transforms:
    - {op: Resize, size: [256]}
    - {op: CenterCrop, size: [224]}
    - {op: ConvertDType, dtype: float32}
    - {op: Normalize, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}

Entries without field apply to all image fields; field: NAME names one. Fields of numbers have
transforms of their own, such as {op: Cast, field: x, dtype: float16}.

penstock inspect show --recipe DATASET prints the pipeline that made a dataset, which --pipeline
reads again.
In Python, penstock.transforms has the same names; in Go, package transforms.`
