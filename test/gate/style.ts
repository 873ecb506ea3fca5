import '../style/conditional-writes.test.js';
import '../style/docstrings.test.js';
import '../style/module-state.test.js';
import '../style/words.test.js';
import '../style/gate-entries.test.js';
import '../supply-chain/supply-chain.test.js';
import '../bench/comparison.test.js';
import '../bench/curve-chart.test.js';
