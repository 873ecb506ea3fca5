/**
 * Writes configuration.md beside this file from the table of settings. Run by `npm run build:configuration`.
 */
import { writeFileSync } from 'node:fs';
import { configurationPage } from '../dist/src/service/config/page.js';

writeFileSync(new URL('configuration.md', import.meta.url), configurationPage());
