import '../lab/cluster/bucket-way.test.js';
import '../lab/cluster/checker.test.js';
import '../lab/cluster/composition.test.js';
import '../lab/cluster/histories.test.js';
import '../lab/cluster/restored.test.js';
import '../lab/fuzz/guided.test.js';
import '../lab/outages/shortened-rules.test.js';
