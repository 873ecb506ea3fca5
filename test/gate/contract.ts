import '../contract/generated.test.js';
import '../contract/tenancy.test.js';
import '../contract/released.test.js';
