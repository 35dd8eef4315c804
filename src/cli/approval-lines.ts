/** Approvals and their rules, for a person. */
import type { AppliedRule, ApprovalRule, Caller, RuleMatch, RunEvent } from '#core';
import type { Line } from './terminal.ts';
import { count, shortLine, terminalJson } from './text.ts';

type ApprovalEvent = RunEvent<
  'approval.given' | 'approval.reminder' | 'approval.escalated' | 'rule.set' | 'rule.applied'
>;

export function approvalLine(event: ApprovalEvent): Line {
  switch (event.type) {
    case 'approval.given': {
      const edited = event.args === undefined ? '' : `, with ${shortLine(terminalJson(event.args), 160)}`;
      return line(
        'strong',
        `▶ approved by ${nameOf(event.by)}${edited}; ${count(event.missing, 'more person', 'more people')} must`,
      );
    }
    case 'approval.reminder':
      return line('strong', `‖ nobody has answered yet (reminder ${event.times})${toolIn(event.payload)}`);
    case 'approval.escalated': {
      const who = event.approver === undefined ? '' : `; ${APPROVERS[event.approver]} may approve now`;
      return line(
        'strong',
        `‖ nobody has answered: escalated to ${shortLine(event.to, 100)}${who}${toolIn(event.payload)}`,
      );
    }
    case 'rule.set':
      return line('plain', `▶ remembered: ${ruleText(event.rule)}`);
    case 'rule.applied': {
      const { verdict, rules, tool } = event;
      const what = verdict === 'approve' ? 'approved' : 'rejected';
      return line(
        'plain',
        `  ${shortLine(tool, 60)} ${what} by ${rules.map(appliedText).join(' and ')}; nobody was asked`,
      );
    }
    default:
      return event satisfies never;
  }
}

const APPROVERS = { anyone: 'anyone', another: 'anyone but the user of the run' } as const;

function toolIn(payload: { readonly [key: string]: unknown } | undefined): string {
  const tool = payload?.['tool'];
  return typeof tool === 'string' ? `: ${shortLine(tool, 60)}` : '';
}

function appliedText({ id, by, setAt }: AppliedRule): string {
  return `${shortLine(id, 120)} (${nameOf(by)}, ${new Date(setAt).toISOString()})`;
}

/** A rule on one line: what it says, for how long, who set it. */
export function ruleText({ id, scope, verdict, tool, match, by, setAt, expiresAt }: ApprovalRule): string {
  const until = expiresAt === undefined ? '' : `, until ${new Date(expiresAt).toISOString()}`;
  const what = `${verdict} ${shortLine(tool, 60)} ${matchText(match)}`;
  return `${shortLine(id, 120)}  ${what}, for this ${scope}${until}  (${nameOf(by)}, ${new Date(setAt).toISOString()})`;
}

function matchText(match: RuleMatch): string {
  if (match === 'tool') return 'with any arguments';
  if ('digest' in match) return `with the same arguments (${match.digest.slice(0, 12)})`;
  return `with arguments like ${shortLine(terminalJson(match.schema), 160)}`;
}

function nameOf(by: Caller | undefined): string {
  return by === undefined ? 'the program' : shortLine(by.user, 60);
}

function line(tone: Line['tone'], text: string): Line {
  return { tone, text };
}
