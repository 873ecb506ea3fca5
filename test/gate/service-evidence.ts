import '../service/evidence.test.js';
import '../service/evidence-damage.test.js';
