import assert from 'node:assert/strict'
import { test } from 'tap'
import { CpuBudget, machine, timeBudgetOf } from '../../../plugins/base/json-schema/time-budget.ts'
import { limits } from '../../../plugins/base/limits/limits.ts'
import { HeldMeter, pattern, toInput } from '../../helpers/tool-input.ts'

/** What the timeout does to work that was under way. */
const stopped = (): never => { throw Object.assign(new Error('stopped'), { code: 'ERR_SCRIPT_EXECUTION_TIMEOUT' }) }

test('what takes too long is stopped, and rests for a minute', async () => {
  let runs = 0
  const quick = (): number => ++runs
  const meter = new HeldMeter()
  const slow = (): never => { runs++; return stopped() }
  const hands = {}
  const budget = timeBudgetOf(hands, meter)
  assert.equal(budget.run('quick', 500, quick), 1)
  assert.equal(budget.run('slow', 20, slow), undefined)
  assert.equal(budget.run('slow', 500, quick), undefined)
  assert.equal(runs, 2, 'it is not begun again')
  assert.equal(timeBudgetOf(hands).run('other', 500, quick), 3)
  assert.equal(timeBudgetOf({}, meter).run('slow', 500, quick), 4, 'other hands have nothing to do with it')
  meter.time += 60_000
  assert.equal(budget.run('slow', 500, quick), 5, 'after a minute it is')
  const deep = (): number => deep() + 1
  assert.equal(budget.run('deep', 500, deep), undefined)
  assert.throws(() => budget.run('wrong', 500, () => { throw new Error('of its own') }), /of its own/)
  for (let n = 0; n < 10; n++) budget.run(`more ${n}`, 5, slow)
  assert.equal(budget.run('quick', 500, quick), undefined, 'of so many, nothing is begun')
})

test('work without an end is stopped by the clock of the machine', async () => {
  const budget = timeBudgetOf({}, machine)
  assert.equal(budget.run('endless', 5, () => { for (;;); }), undefined)
  assert.ok(machine.cpuTime() > 0 && machine.now() > 0)
})

test('work that was only kept waiting is begun again, and what is stopped costs what it took', async () => {
  const meter = new HeldMeter()
  let runs = 0
  // Others had the processor: its CPU time is not used up.
  const run = (work: () => void, timeout: number): void => {
    if (++runs < 3) { meter.taken += timeout / 10; stopped() }
    work()
  }
  assert.equal(timeBudgetOf({}, { now: meter.now, cpuTime: meter.cpuTime, run }).run('kept waiting', 100, () => 'done'), 'done')
  assert.equal(runs, 3)
  const leftAfter = (isPatient: boolean): number => {
    const meter = new HeldMeter()
    const cpu = new CpuBudget({ isPatient, meter })
    assert.equal(timeBudgetOf({}, meter).run('a', 100, stopped, cpu), undefined)
    return cpu.left
  }
  const { burst, validation, longer } = limits.schemaCpu
  assert.deepEqual([leftAfter(false), leftAfter(true)], [burst - longer * validation, burst - 100], 'a user is stopped sooner, and charged more')
})

const hostile = pattern('^(a+)+$')
const trap = { text: `${'a'.repeat(60)}!` }

test('arguments of any size are checked, or refused, and do not keep those of others from being checked', async () => {
  const simple = { type: 'object', properties: { n: { type: 'number' }, list: { type: 'array', items: { type: 'integer' } } } }
  const wrong = ['n must be number']
  const pads: Array<[what: string, pad: unknown]> = [
    ['a long text', 'x'.repeat(1_000_000)],
    ['many texts', Array.from({ length: 3_000 }, () => 'x')],
    ['very many texts', Array.from({ length: 200_000 }, () => 'x')],
    ['many objects', Array.from({ length: 60_000 }, () => ({ a: [1] }))]
  ]
  for (const isPatient of [false, true]) {
    const meter = new HeldMeter()
    const { read, check, isLarge } = toInput(simple, { meter, cpu: new CpuBudget({ isPatient, meter }) })
    for (const [what, pad] of pads) {
      assert.deepEqual(check(read({ n: 'abc', pad }, false)), wrong, what)
      assert.deepEqual(check(read({ n: 1, pad }, false)), [], what)
      assert.equal(isLarge({ n: 1, pad }), true, what)
    }
    assert.deepEqual(check(read({ n: `${'0'.repeat(100_000)}x` }, false)), wrong)
    assert.deepEqual(check({ list: [...Array.from({ length: 100_000 }, () => 1), 'x'] }), ['list.100000 must be integer'])
    assert.equal(isLarge({ n: 1 }), false)
  }
  // Of a schema whose cost is not known, large arguments are checked or refused, whatever has been tried before.
  const meter = new HeldMeter()
  const { read, check } = toInput({ ...simple, properties: { ...simple.properties, set: { uniqueItems: true } } }, { meter })
  const set = Array.from({ length: 20_000 }, (_, n) => ({ n }))
  // Compiled before, for small arguments and for large ones.
  for (const args of [{}, { set: set.slice(0, 1_000) }]) assert.deepEqual(check(args), [])
  meter.patience = 20
  for (let n = 0; n < 12; n++) {
    assert.throws(() => check(read({ n: 1, set }, false)), /too large to be checked in time/)
    try {
      assert.deepEqual(check(read({ n: 'abc', set }, false)), wrong)
    } catch (error) {
      assert.match(String(error), /too large to be checked in time/)
    }
  }
  meter.patience = 60_000
  assert.deepEqual(check(read({ n: 'abc' }, false)), wrong, 'small ones have a budget of their own')
  meter.patience = 5
  const { check: trapped } = toInput({ properties: { ...simple.properties, text: hostile } }, { meter })
  assert.deepEqual(trapped({ n: 'abc', ...trap }), [], 'a hostile schema keeps nobody from calling the tool')
})

test('the schemas of one owner take no more CPU than its budget, of one request and of many', async () => {
  const meter = new HeldMeter(2)
  const cpu = new CpuBudget({ meter })
  const inputs = Array.from({ length: 30 }, () => toInput({ properties: { text: hostile } }, { meter, cpu }))
  const useAll = (): void => { for (const { check } of inputs) assert.deepEqual(check(trap), []) }
  useAll()
  assert.ok(meter.taken > 0 && meter.taken <= limits.schemaCpu.burst, `${meter.taken} ms at once`)
  for (; meter.time < 1_000; meter.time += 20) useAll()
  assert.ok(meter.taken <= limits.schemaCpu.burst + limits.schemaCpu.perSecond, `${meter.taken} ms within a second`)
  // Nobody else notices.
  for (const [schema, args, wrong] of [
    [{ properties: { text: hostile } }, { text: 1 }, 'text must be string'],
    [{ uniqueItems: true, properties: { text: {} }, required: ['text'] }, {}, 'text is required']
  ] as const) assert.deepEqual(toInput(schema).check(args), [wrong])
})

test('work that was given little time may be done once there is more', async () => {
  const meter = new HeldMeter()
  const cpu = new CpuBudget({ isPatient: true, meter })
  const { check } = toInput({ properties: { text: pattern('a+b') } }, { meter, cpu })
  const wrong = ['text must be string']
  assert.deepEqual(check({ text: 1 }), wrong)
  cpu.spend(cpu.left)
  assert.deepEqual(check({ text: 1 }), [], 'only the server validates')
  meter.time += 1_000
  assert.deepEqual(check({ text: 1 }), wrong)
})

test('long work on schemas of users counts more than its time, short work and that of admins does not', async () => {
  const meter = new HeldMeter()
  const leftAfter = (cpu: CpuBudget, time: number, isStopped = false): number => {
    const before = cpu.left
    cpu.spend(time, isStopped)
    return before - cpu.left
  }
  assert.equal(leftAfter(new CpuBudget({ meter }), 10), 10)
  assert.equal(leftAfter(new CpuBudget({ meter }), 30), 10 + 20 * 8)
  assert.equal(leftAfter(new CpuBudget({ meter }), 5, true), 40)
  const admins = (): CpuBudget => new CpuBudget({ isPatient: true, doubles: true, meter })
  assert.deepEqual([leftAfter(admins(), 30), leftAfter(admins(), 5, true)], [30, 5])
  const hostile = new CpuBudget({ doubles: true, meter })
  const costs = Array.from({ length: 8 }, () => leftAfter(hostile, 5, true))
  assert.deepEqual(costs, [40, 80, 160, 320, 640, 1_280, 1_280, 1_280])
  assert.equal(leftAfter(hostile, 10), 10, 'what is not stopped costs what it did')
})

test('what is stopped is begun again seldom, and for a short time', async () => {
  const meter = new HeldMeter(2)
  const cpu = new CpuBudget({ meter })
  let first = 0
  for (let n = 0; n < 200; n++, meter.time += 5) {
    toInput({ properties: { text: hostile } }, { meter, cpu }).check(trap)
    // The first ones take what an owner has at the start.
    if (n === 5) first = meter.taken
  }
  assert.ok(meter.taken - first <= 100, `${meter.taken} ms, ${first} of them for the first ones`)
})
