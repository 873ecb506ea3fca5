import { printCheck } from '../check-lines.js';
import { defineCommand, EXIT } from '../command.js';
import { type Diagnosed, diagnose } from '../service-diagnosis.js';
import { PARTNER_DETAILS } from './partner-account.js';

const MARKS: Readonly<Record<Diagnosed['verdict'], string>> = {
  ok: 'ok',
  warn: 'warn',
  fail: 'FAIL',
  not_checked: 'not checked',
};

export const examineService = defineCommand({
  name: 'doctor',
  service: 'partner',
  summary: 'Look at all that stands between you and a verdict, and say what to do',
  details: [
    'Node, address, TLS, service, clock, key, scopes and quota. It costs no unit, and sends no file. Exit',
    'code 1: something fails.',
    '',
    ...PARTNER_DETAILS,
  ],
  operands: [],
  options: { json: { help: 'the findings as one line of JSON' } },
  async run(_operands, options, context) {
    const { terminal } = context;
    const checks = await diagnose(context);
    const failed = checks.filter(({ verdict }) => verdict === 'fail').length;
    if (options.json) terminal.printJson({ checks, failed });
    else for (const check of checks) printCheck(terminal, MARKS[check.verdict], check, check.advice);
    return failed === 0 ? EXIT.good : EXIT.notGood;
  },
});
