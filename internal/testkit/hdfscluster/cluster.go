// Package hdfscluster runs a real HDFS, for tests: a namenode and datanodes, each a process of Java.
package hdfscluster

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
)

// Cluster is a running HDFS on this machine.
type Cluster struct {
	Address   string // of the namenode
	dir       string
	classpath string
	datanodes []*exec.Cmd
}

const (
	namenode = "org.apache.hadoop.hdfs.server.namenode.NameNode"
	datanode = "org.apache.hadoop.hdfs.server.datanode.DataNode"
)

// Start runs a namenode and n datanodes until the test ends, with two replicas of each block of 1 MiB. Without Java and
// the jars of Hadoop, in the folder HADOOP_JARS, the test is skipped.
func Start(t *testing.T, n int) *Cluster {
	t.Helper()
	jars, err := filepath.Glob(filepath.Join(os.Getenv("HADOOP_JARS"), "hadoop-client-minicluster-*.jar"))
	if os.Getenv("HADOOP_JARS") == "" || err != nil || len(jars) == 0 {
		t.Skip("no Hadoop in $HADOOP_JARS: make test-hdfs gets it")
	}
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip("no java: apt install default-jre-headless")
	}
	c := &Cluster{Address: freeAddress(t), dir: t.TempDir()}
	c.classpath = c.dir + ":" + filepath.Join(os.Getenv("HADOOP_JARS"), "*")
	c.configure(t)
	if out, err := c.command(c.dir, namenode, "-format", "-force", "-nonInteractive").CombinedOutput(); err != nil {
		t.Fatalf("the namenode cannot be formatted: %v\n%s", err, out)
	}
	c.start(t, "namenode", namenode)
	for i := range n {
		c.datanodes = append(c.datanodes, c.start(t, fmt.Sprint("datanode", i), datanode))
	}
	c.wait(t, n)
	return c
}

// URL returns the URL of a path.
func (c *Cluster) URL(path string) string { return "hdfs://" + c.Address + "/" + path }

// Kill ends a datanode, as a power cut would.
func (c *Cluster) Kill(i int) {
	_ = c.datanodes[i].Process.Kill()
	_, _ = c.datanodes[i].Process.Wait()
}

// Restart starts a datanode that was killed, with what it has, and waits for it.
func (c *Cluster) Restart(t *testing.T, i int) {
	t.Helper()
	c.datanodes[i] = c.start(t, fmt.Sprint("datanode", i), datanode)
	c.wait(t, len(c.datanodes))
}

// configure writes what the processes have in common. A datanode is dead after 13 seconds without a heartbeat, as
// after 10 minutes by default.
func (c *Cluster) configure(t *testing.T) {
	var b strings.Builder
	b.WriteString("<configuration>\n")
	for name, value := range map[string]string{
		"fs.defaultFS": "hdfs://" + c.Address, "dfs.replication": "2", "dfs.blocksize": "1048576",
		"dfs.namenode.name.dir": "${penstock.dir}/name", "dfs.datanode.data.dir": "${penstock.dir}/data",
		"dfs.namenode.http-address": "127.0.0.1:0", "dfs.datanode.address": "127.0.0.1:0",
		"dfs.datanode.http.address": "127.0.0.1:0", "dfs.datanode.ipc.address": "127.0.0.1:0",
		"dfs.heartbeat.interval": "1", "dfs.namenode.heartbeat.recheck-interval": "1500",
		"dfs.namenode.safemode.extension": "0",
		"dfs.permissions.enabled":         "false", "dfs.datanode.du.reserved": "0", "dfs.datanode.handler.count": "3",
		"dfs.namenode.handler.count": "4",
	} {
		fmt.Fprintf(&b, "<property><name>%s</name><value>%s</value></property>\n", name, value)
	}
	b.WriteString("</configuration>\n")
	for _, name := range []string{"core-site.xml", "hdfs-site.xml"} {
		require.NoError(t, os.WriteFile(filepath.Join(c.dir, name), []byte(b.String()), 0o600))
	}
}

// command returns a process of Java with a folder of its own.
func (c *Cluster) command(dir, class string, args ...string) *exec.Cmd {
	java := []string{"-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dpenstock.dir=" + dir,
		"-Djava.net.preferIPv4Stack=true", "-cp", c.classpath, class}
	cmd := exec.Command("java", append(java, args...)...)
	cmd.Dir = c.dir
	return cmd
}

func (c *Cluster) start(t *testing.T, name, class string) *exec.Cmd {
	t.Helper()
	dir := c.dir // that was formatted
	if class == datanode {
		dir = filepath.Join(c.dir, name)
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	log, err := os.Create(filepath.Join(c.dir, name+".log"))
	require.NoError(t, err)
	defer log.Close()
	cmd := c.command(dir, class)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = cmd.Process.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s: %s", name, text[max(0, len(text)-2000):])
		}
	})
	return cmd
}

// wait waits until the cluster takes writes, by Hadoop's own client.
func (c *Cluster) wait(t *testing.T, datanodes int) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		out, err := c.command(c.dir, "org.apache.hadoop.hdfs.tools.DFSAdmin", "-report").CombinedOutput()
		if err == nil && strings.Contains(string(out), fmt.Sprintf("Live datanodes (%d)", datanodes)) &&
			!strings.Contains(string(out), "Safe mode is ON") {
			return
		}
	}
	t.Fatal("the cluster does not come up in two minutes")
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
