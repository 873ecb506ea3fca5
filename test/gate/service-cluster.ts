import '../service/cluster-start.test.js';
import '../service/evidence-cluster.test.js';
import '../service/sandbox-cluster.test.js';
