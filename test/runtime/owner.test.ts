/** Which owners of a lease are known to be dead: those of this machine, boot and PID namespace whose process is gone. */
import { describe, expect, it } from 'vitest';
import { isDeadOwner, ownerName, ownerText, type ProcessSurroundings } from '#runtime';

/** A machine with these processes: when each was started. */
function machine(
  processes: Readonly<Record<number, string | undefined>>,
  more: Partial<ProcessSurroundings> = {},
): ProcessSurroundings {
  return {
    host: 'a host:with signs',
    pid: 7,
    boot: 'boot-1',
    pidNamespace: '4026531836',
    startOf: (pid) => (pid in processes ? processes[pid] : 'gone'),
    ...more,
  };
}

describe('the name of an owner', () => {
  const name = ownerName(machine({ 7: '100' }));

  it('says host, process, boot, PID namespace and start, and is another each time', () => {
    expect(name.split(':').slice(0, 5)).toEqual(['a%20host%3Awith%20signs', '7', 'boot-1', '4026531836', '100']);
    expect(ownerName(machine({ 7: '100' }))).not.toBe(name);
    expect(ownerText(name)).toBe('process 7 on a host:with signs');
    expect(ownerText('someone')).toBe('someone');
  });

  it.each([
    ['it is gone', machine({})],
    ['another process has its number', machine({ 7: '250' })],
  ])('is that of a dead process when %s', (_, here) => {
    expect(isDeadOwner(name, here)).toBe(true);
  });

  it.each([
    ['it is there', machine({ 7: '100' })],
    ['nobody can say whether it is there', machine({ 7: undefined })],
    ['it was in another PID namespace', machine({}, { pidNamespace: '4026532178' })],
    ['the machine has booted since, or it is another one', machine({}, { boot: 'boot-2' })],
    ['the host has another name', machine({}, { host: 'other' })],
    ['this process cannot read its boot', machine({}, { boot: undefined })],
    ['this process cannot read its PID namespace', machine({}, { pidNamespace: undefined })],
  ])('is that of a process that lives when %s', (_, here) => {
    expect(isDeadOwner(name, here)).toBe(false);
  });

  it.each([
    [
      'was made where nothing can be found out',
      ownerName(machine({ 7: undefined }, { boot: undefined, pidNamespace: undefined })),
    ],
    ['lacks its start', ownerName(machine({ 7: undefined }))],
    ['is of an older version', 'a%20host%3Awith%20signs:7:12345678'],
    ['is anything else', 'someone'],
    ['is nothing', ''],
    ['has too many parts', `${name}:more`],
    ['has no number', name.replace(':7:', ':x:')],
    ['has a number that means others', name.replace(':7:', ':-1:')],
    ['has the number 0', name.replace(':7:', ':0:')],
  ])('that %s is that of a process that lives', (_, other) => {
    expect(isDeadOwner(other, machine({}))).toBe(false);
  });
});
