// Package hdfs reads and writes files of Hadoop's file system, hdfs://NAMENODE:8020/PATH, as
// objects of a Bucket.
//
// HADOOP_CONF_DIR names the directory with the addresses of a cluster's namenodes and the way to
// reach its datanodes. The user comes from the URL, from HADOOP_USER_NAME, or is the user of the
// process. Clusters that ask for Kerberos are not supported.
//
// A file is written under another name and renamed by Commit, so that no reader sees a part of it.
// If a datanode fails, reads continue at another datanode, and a write has to start again. From
// the third attempt on, each attempt writes one replica less, down to one, because the namenode
// may choose the failed datanode again.
//
// The client is [github.com/colinmarc/hdfs]. It waits without limit for an answer and panics at
// incomplete ones, so connections have deadlines (open.go), and panics become errors (errors.go).
package hdfs
