import { printCheck } from '../check-lines.js';
import { defineCommand, EXIT } from '../command.js';
import { type Diagnosed, diagnose } from '../service-diagnosis.js';

const MARKS: Readonly<Record<Diagnosed['verdict'], string>> = {
  ok: 'ok',
  warn: 'warn',
  fail: 'FAIL',
  not_checked: 'not checked',
};

export const examineService = defineCommand({
  name: 'doctor',
  service: 'partner',
  summary: 'Check everything that a verification needs, and advise what to fix',
  details: [
    'Checks Node, address, TLS, service, clock, key, scopes and quota. It is not billed and sends no file.',
    'Exit code 1: at least one check fails.',
  ],
  options: { json: { help: 'print the checks as one line of JSON' } },
  async run(_operands, options, context) {
    const { terminal } = context;
    const checks = await diagnose(context);
    const failed = checks.filter(({ verdict }) => verdict === 'fail').length;
    if (options.json) terminal.printJson({ checks, failed });
    else for (const check of checks) printCheck(terminal, MARKS[check.verdict], check, check.advice);
    return failed === 0 ? EXIT.good : EXIT.notGood;
  },
});
