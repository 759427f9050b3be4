// their streams and what is replayed on them, under a clock that is held.
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import { address, beginSession, begun, connection, listening, messagesIn, minute, startSessions, view } from '../helpers/held.ts'
import fc from 'fast-check'
import { turnsOfLoop } from '../helpers/clock.ts'
import { seed } from '../helpers/json-texts.ts'
import { eventId, parseEventId, ReplayBuffer } from '../../plugins/downstream/legacy/message-buffer.ts'
import type { Session } from '../../plugins/downstream/legacy/session.ts'
import { memoryBudget } from '../../plugins/base/limits/memory.ts'
import type { Question } from '../../protocol/exchange.ts'
import { downstreamLimits } from '../../plugins/downstream/limits.ts'
import { identityLimits } from '../../plugins/identity/limits.ts'
import { baseLimits } from '../../plugins/base/limits/limits.ts'

test('replay: the last events of one session', async (t) => {
  const at = (replay: ReplayBuffer, stream: number, after: number): Array<[number, string]> =>
    replay.after(stream, after).map((entry) => [entry.number, entry.data])

  await t.test('what came on one stream after one event, oldest first', async () => {
    const replay = new ReplayBuffer('ann')
    replay.add(1, 1, 'a')
    replay.add(2, 1, 'other')
    replay.add(1, 2, 'b')
    replay.add(1, 3, 'c')
    assert.deepEqual(at(replay, 1, 0), [[1, 'a'], [2, 'b'], [3, 'c']])
    assert.deepEqual(at(replay, 1, 2), [[3, 'c']])
    assert.deepEqual(at(replay, 1, 3), [])
    assert.deepEqual(at(replay, 1, 99), [])
    assert.deepEqual(at(replay, 2, 0), [[1, 'other']])
    assert.deepEqual(at(replay, 3, 0), [])
  })
  await t.test('bounded in number', async () => {
    const replay = new ReplayBuffer('ann')
    for (let n = 1; n <= downstreamLimits.replayEvents + 10; n++) replay.add(1, n, 'x')
    const kept = at(replay, 1, 0)
    assert.equal(kept.length, downstreamLimits.replayEvents)
    assert.deepEqual([kept[0]?.[0], kept.at(-1)?.[0]], [11, downstreamLimits.replayEvents + 10])
  })
  await t.test('bounded in size, over all streams', async () => {
    const replay = new ReplayBuffer('ann')
    const third = 'x'.repeat(Math.floor(downstreamLimits.replaySize / 3))
    for (let n = 1; n <= 4; n++) replay.add(n % 2, n, third)
    assert.deepEqual([at(replay, 1, 0).length, at(replay, 0, 0).length], [1, 2])
    replay.add(1, 5, 'x'.repeat(downstreamLimits.replaySize + 1))
    assert.deepEqual([replay.after(1, 0).map((entry) => entry.number), at(replay, 0, 0).length], [[5], 0],
      'the newest stays, however large, and alone')
    replay.add(1, 6, 'small')
    assert.deepEqual(at(replay, 1, 0), [[6, 'small']], 'until another comes')
  })
  await t.test('texts beyond Latin-1 count as the two bytes a character that they take', async () => {
    const replay = new ReplayBuffer('ann')
    const third = 'ж'.repeat(Math.floor(downstreamLimits.replaySize / 6))
    for (let n = 1; n <= 4; n++) replay.add(1, n, third)
    assert.deepEqual(at(replay, 1, 0).map(([number]) => number), [2, 3, 4])
    replay.clear()
    const large = 'ж'.repeat(downstreamLimits.replaySize / 2 - 1_000)
    const replays = Array.from({ length: downstreamLimits.keptSize / downstreamLimits.replaySize + 10 }, () => new ReplayBuffer('bob'))
    for (const each of replays) each.add(1, 1, large)
    assert.equal(replays.filter((each) => each.after(1, 0).length > 0).length, downstreamLimits.keptSize / downstreamLimits.replaySize)
    for (const each of replays) each.clear()
  })
  await t.test('all sessions together are bounded, too: the oldest of all go, and those of one that ended are gone', async () => {
    const large = 'x'.repeat(downstreamLimits.replaySize - 1_000)
    const replays = Array.from({ length: downstreamLimits.keptSize / downstreamLimits.replaySize + 10 }, () => new ReplayBuffer('ann'))
    for (const replay of replays) replay.add(1, 1, large)
    const kept = (): number[] => replays.flatMap((replay, n) => replay.after(1, 0).length > 0 ? [n] : [])
    assert.deepEqual(kept(), replays.map((_, n) => n).slice(10))
    for (const replay of replays.slice(10, 20)) replay.clear()
    for (const replay of replays.slice(0, 10)) replay.add(1, 2, large)
    assert.equal(kept().length, replays.length - 10, 'there is room again')
    for (const replay of replays) replay.clear()
    assert.deepEqual(kept(), [])
  })
  await t.test('beyond that bound, who holds most loses his oldest, and nobody else anything', async (t) => {
    const { sessions } = startSessions(t)
    const ann = beginSession(sessions, view('ann'), '2025-11-25', {})
    const broken = connection()
    ann.listen(broken.stream, undefined)
    ann.send('{"jsonrpc":"2.0","id":1,"result":{}}')
    const [, first] = /^id: (.+)$/m.exec(broken.text()) ?? []
    broken.break()
    ann.send('{"jsonrpc":"2.0","method":"notifications/waits"}')
    const eves = Array.from({ length: 300 }, () => beginSession(sessions, view('eve'), '2025-11-25', {}))
    for (let n = 0; n < 70; n++) {
      for (const eve of eves) eve.deliver('notifications/resources/updated', JSON.stringify({ uri: `x://${n}/${'x'.repeat(4_000)}` }))
    }
    const resumed = connection()
    ann.listen(resumed.stream, `${first?.split('-')[0]}-0`)
    assert.deepEqual(messagesIn(resumed.text()).filter((text) => text !== ''), [
      '{"jsonrpc":"2.0","id":1,"result":{}}',
      '{"jsonrpc":"2.0","method":"notifications/waits"}'
    ])
    const held = connection()
    eves[0]?.listen(held.stream, undefined)
    const uris = [...held.text().matchAll(/"x:\/\/(\d+)/g)].map(([, n]) => Number(n))
    assert.deepEqual(uris, Array.from({ length: uris.length }, (_, n) => 70 - uris.length + n), 'his newest')
    assert.ok(uris.length > 50 && uris.length < downstreamLimits.waitingMessages, `${uris.length} of each session`)
  })
  await t.test('whatever comes, the bounds hold and the newest stay', async () => {
    fc.assert(fc.property(fc.array(fc.tuple(fc.nat(2), fc.nat(downstreamLimits.replaySize * 2)), { maxLength: 12 }), (list) => {
      const replay = new ReplayBuffer('ann')
      list.forEach(([stream, size], n) => { replay.add(stream, n, 'x'.repeat(size)) })
      const kept = [0, 1, 2].flatMap((stream) => replay.after(stream, -1)).sort((a, b) => a.number - b.number)
      const size = kept.reduce((sum, { data }) => sum + data.length, 0)
      assert.ok(kept.length === Math.min(list.length, 1) || size <= downstreamLimits.replaySize)
      assert.deepEqual(kept.map((entry) => entry.number), list.map((_, n) => n).slice(list.length - kept.length), 'the oldest go first')
      const next = list[list.length - kept.length - 1]
      if (next !== undefined) {
        assert.ok(kept.reduce((sum, { data }) => sum + data.length, next[1]) > downstreamLimits.replaySize, 'no more go than must')
      }
    }), { seed, numRuns: 50 })
  })
  await t.test('event ids tell the stream and the place', async () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(), (stream, place) => {
        assert.deepEqual(parseEventId(eventId(stream, place)), { stream, number: place })
      }),
      { seed }
    )
    for (const bad of [
      '', '-', '1', '1-', '-1', '1-2-3', '1.5-2', '1-2x', ' 1-2', '1-2 ', '1-2\n', 'a-b', '-1-2', '0x1-2', '1e3-1',
      '99999999999-1', '1-99999999999', '１-２', '1'.repeat(100_000)
    ]) { assert.equal(parseEventId(bad), undefined, bad.slice(0, 20)) }
  })
})

test('sessions: under (principal, route, id)', async (t) => {
  await t.test('an id is long, new each time, and found by its own principal on its own route only', async (t) => {
    const { sessions } = startSessions(t)
    const session = beginSession(sessions, view('ann'), '2025-11-25', { sampling: {} })
    assert.match(session.sessionId, /^[\x21-\x7e]{43,}$/)
    assert.notEqual(beginSession(sessions, view('ann'), '2025-11-25', {}).sessionId, session.sessionId)
    assert.equal(sessions.find(view('ann'), session.sessionId), session)
    for (const stranger of [view('bob'), view('ann', 'server'), view('bob', 'server')]) {
      assert.equal(sessions.find(stranger, session.sessionId), undefined)
    }
    for (const id of ['', 'x', session.sessionId.toLowerCase(), `${session.sessionId} `, '__proto__', 'constructor']) {
      assert.equal(sessions.find(view('ann'), id), undefined, id)
    }
    assert.equal(sessions.find(view('ann'), session.id), undefined, 'what we call it ourselves opens nothing')
    assert.deepEqual([session.capabilities, session.version, session.user], [{ sampling: {} }, '2025-11-25', 'ann'])
  })
  await t.test('one id of several principals is several sessions', async (t) => {
    const { sessions, ended } = startSessions(t)
    const views = [view('ann'), view('bob'), view('ann', 'server')]
    const [ann, bob, annElsewhere] = views.map((each) => sessions.rebuild(each, 'chosen', '2025-06-18', address))
    assert.ok(ann && bob && annElsewhere)
    assert.equal(sessions.size, 3)
    assert.equal(new Set([ann.id, bob.id, annElsewhere.id]).size, 3, 'nothing of one is kept under what is another\'s')
    assert.ok([ann, bob, annElsewhere].every(({ id, sessionId }) => id !== 'chosen' && sessionId === 'chosen'))
    const found = (): unknown[] => views.map((each) => sessions.find(each, 'chosen'))
    assert.deepEqual(found(), [ann, bob, annElsewhere])
    sessions.end(bob, 'over')
    assert.deepEqual(found(), [ann, undefined, annElsewhere])
    assert.equal(ann.hasEnded, false)
    assert.deepEqual(ended, ['chosen'])
  })
  await t.test('an end is told once, and leaves nothing', async (t) => {
    const { session, sessions, ended } = begun(t)
    sessions.end(session, 'over')
    sessions.end(session, 'over again')
    assert.deepEqual(
      [ended, session.hasEnded, sessions.size, sessions.find(view('ann'), session.sessionId), [...sessions]],
      [[session.sessionId], true, 0, undefined, []]
    )
  })
  await t.test('closing ends all of them', async (t) => {
    const { sessions, ended } = startSessions(t)
    const ids = [view('ann'), view('bob')].map((each) => beginSession(sessions, each, '2025-11-25', {}).sessionId)
    sessions.close()
    assert.deepEqual([ended, sessions.size], [ids, 0])
  })
  await t.test('one owner may not fill the last quarter, and the last comer is served', async (t) => {
    const { sessions } = startSessions(t)
    for (let n = 0; n < downstreamLimits.sessions * 3 / 4; n++) beginSession(sessions, view('ann'), '2025-11-25', {})
    assert.throws(() => beginSession(sessions, view('ann'), '2025-11-25', {}), { name: 'ShareError', isOwnerLimit: true })
    assert.throws(() => sessions.rebuild(view('ann'), 'x', '2025-11-25', address), { isOwnerLimit: true })
    assert.ok(beginSession(sessions, view('bob'), '2025-11-25', {}))
    const [first] = sessions
    assert.ok(first)
    sessions.end(first, 'over')
    sessions.end([...sessions][0] ?? first, 'over')
    assert.ok(beginSession(sessions, view('ann'), '2025-11-25', {}), 'a place that was given back')
  })
})

test('sessions: rebuilt under an id that a client brings', async (t) => {
  await t.test('what the client could do is not restored', async (t) => {
    const { sessions } = startSessions(t)
    const session = sessions.rebuild(view('ann'), 'abc', '2025-06-18', address)
    assert.deepEqual([session?.sessionId, session?.capabilities, session?.version], ['abc', {}, '2025-06-18'])
    assert.equal(sessions.find(view('ann'), 'abc'), session)
  })
  await t.test('an absurd id is not one', async (t) => {
    const { sessions } = startSessions(t)
    for (const id of ['', ' ', 'a b', 'a\n', 'é', 'a\0', 'x'.repeat(129)]) {
      assert.equal(sessions.rebuild(view('ann'), id, '2025-11-25', address), undefined, JSON.stringify(id))
    }
    for (const id of ['a', '!~', 'x'.repeat(128), '__proto__']) assert.equal(sessions.rebuild(view('ann'), id, '2025-11-25', address)?.sessionId, id)
    assert.equal(sessions.size, 4)
  })
  await t.test('so many in a minute for each principal, then again', async (t) => {
    const { sessions, tick } = startSessions(t)
    const rebuild = (key: string, n: number): Session | undefined => sessions.rebuild(view(key), `id-${key}-${n}`, '2025-11-25', address)
    for (let n = 0; n < downstreamLimits.rebuildsPerMinute; n++) assert.ok(rebuild('ann', n))
    assert.equal(rebuild('ann', -1), undefined)
    assert.equal(sessions.rebuild(view('ann', 'server'), 'elsewhere', '2025-11-25', address), undefined, 'another route is the same principal')
    assert.ok(rebuild('bob', 0), 'another principal is not')
    tick(minute)
    assert.ok(rebuild('ann', -1))
  })
})

test('sessions: idle ones end', async (t) => {
  await t.test('after half an hour without a request', async (t) => {
    const { sessions, ended, tick } = startSessions(t)
    const used = beginSession(sessions, view('ann'), '2025-11-25', {})
    const idle = beginSession(sessions, view('ann'), '2025-11-25', {})
    tick(identityLimits.sessionIdle - minute)
    assert.ok(sessions.find(view('ann'), used.sessionId))
    assert.deepEqual(ended, [])
    tick(2 * minute)
    assert.deepEqual(ended, [idle.sessionId])
    tick(identityLimits.sessionIdle)
    assert.deepEqual(ended, [idle.sessionId, used.sessionId])
    assert.equal(sessions.size, 0)
  })
  await t.test('a stranger who tries an id does not keep it alive', async (t) => {
    const { session, sessions, ended, tick } = begun(t)
    tick(identityLimits.sessionIdle - minute)
    sessions.find(view('bob'), session.sessionId)
    tick(2 * minute)
    assert.deepEqual(ended, [session.sessionId])
  })
  await t.test('an open stream keeps one alive, a broken one does so no longer', async (t) => {
    const { session, ended, tick } = begun(t)
    const held = listening(session)
    tick(3 * identityLimits.sessionIdle)
    assert.deepEqual([ended, session.isBusy], [[], true])
    held.break()
    assert.equal(session.isBusy, false)
    tick(identityLimits.sessionIdle - minute)
    assert.deepEqual(ended, [])
    tick(2 * minute)
    assert.deepEqual(ended, [session.sessionId])
  })
  await t.test('a request in flight keeps one alive', async (t) => {
    const { session, ended, tick } = begun(t)
    session.exchanges.set(1, { cancel: () => {} } as unknown as Parameters<typeof session.exchanges.set>[1])
    tick(3 * identityLimits.sessionIdle)
    assert.deepEqual(ended, [])
    session.exchanges.take(1)
    tick(minute)
    assert.deepEqual(ended, [session.sessionId])
  })
})

const question = (paramsText: string, { signal }: AbortController): Question =>
  ({ method: 'sampling/createMessage', params: {}, paramsText, signal, outlivesRequest: false, progress: () => {} })

test('a session and its streams', async (t) => {
  const begin = (t: Test): Session => beginSession(startSessions(t).sessions, view('ann'), '2025-11-25', {})

  await t.test('news wait, bounded and each once, for the next stream', async (t) => {
    const session = begin(t)
    for (let n = 0; n < 3; n++) session.deliver('notifications/tools/list_changed')
    for (let n = 0; n < downstreamLimits.waitingMessages; n++) session.deliver('notifications/message', `{"level":"info","data":${n}}`)
    const held = listening(session)
    const sent = held.text().split('\n').filter((line) => line.startsWith('data: {'))
    assert.equal(sent.length, downstreamLimits.waitingMessages)
    assert.equal(held.text().includes('list_changed'), false, 'the oldest go')
    session.deliver('notifications/tools/list_changed')
    assert.equal(held.text().split('list_changed').length, 2)
  })
  await t.test('what waits is bounded in size, and what is too large alone does not wait', async (t) => {
    const session = begin(t)
    const say = (level: string, size: number): void => {
      session.deliver('notifications/message', JSON.stringify({ level, data: 'x'.repeat(size) }))
    }
    for (const level of ['debug', 'info', 'notice', 'warning', 'error']) say(level, downstreamLimits.waitingSize / 4)
    say('alert', downstreamLimits.waitingSize)
    const held = listening(session)
    assert.deepEqual([...held.text().matchAll(/"level":"(\w+)"/g)].map(([, level]) => level), ['notice', 'warning', 'error'])
  })
  await t.test('each message goes to one stream; so many streams at once', async (t) => {
    const session = begin(t)
    const held = Array.from({ length: downstreamLimits.streamsPerSession }, () => {
      assert.equal(session.canOpenStream(undefined), true)
      const each = listening(session, undefined)
      return each
    })
    assert.deepEqual([undefined, 'nonsense', '99-0', '3-0'].map((eventId) => session.canOpenStream(eventId)),
      [false, false, false, true], 'one that is taken up is no further one')
    session.deliver('x')
    assert.equal(held.filter((each) => each.text().includes('"method":"x"')).length, 1)
    held[0]?.break()
    assert.equal(session.canOpenStream(undefined), true)
    session.deliver('y')
    assert.equal(held.filter((each) => each.text().includes('"method":"y"')).length, 1)
    assert.equal(held[0]?.text().includes('"method":"y"'), false)
  })
  await t.test('a stream is taken up where it broke', async (t) => {
    const session = begin(t)
    const first = listening(session, undefined)
    for (const method of ['a', 'b', 'c']) session.deliver(method)
    const ids = [...first.text().matchAll(/^id: (.+)$/gm)].map(([, id]) => id)
    first.break()
    session.deliver('waited')
    const second = listening(session, ids[1])
    assert.deepEqual([...second.text().matchAll(/"method":"(\w+)"/g)].map(([, method]) => method), ['b', 'c', 'waited'])
    for (const unknown of ['99-0', 'nonsense', '']) {
      const other = listening(session, unknown)
      assert.equal(other.text().includes('"method"'), false, unknown)
    }
  })
  await t.test('what is in flight can be taken up again, however many streams came after it; what is over, for a while', async (t) => {
    const session = begin(t)
    const carrying = session.streams.open()
    carrying.send('{"method":"kept"}')
    // A reply is on it.
    carrying.onResume = () => {}
    for (let n = 0; n < downstreamLimits.resumableStreams + 5; n++) {
      const stream = session.streams.open()
      stream.attach(connection().stream)
      stream.send(`{"method":"of ${stream.number}"}`)
      stream.end()
    }
    const after = (eventId: string): string[] => {
      const held = listening(session, eventId)
      return messagesIn(held.text())
    }
    const last = 1 + downstreamLimits.resumableStreams + 5
    assert.deepEqual([after('1-0'), after('2-0'), after(`${last}-0`)], [['{"method":"kept"}'], [], [`{"method":"of ${last}"}`]])
  })
  await t.test('paused and resumed again and again, it is one stream, on which nothing is lost', async (t) => {
    const session = begin(t)
    const stream = session.streams.open()
    let held = connection()
    stream.attach(held.stream)
    // A reply is on it.
    stream.onResume = () => {}
    const got: string[] = []
    for (let n = 0; n < 3 * downstreamLimits.resumableStreams; n++) {
      stream.pause(10)
      assert.equal(held.open(), false)
      stream.send(`{"n":${n}}`)
      const lastId = [...held.text().matchAll(/^id: (.+)$/gm)].at(-1)?.[1]
      held = connection()
      session.listen(held.stream, lastId)
      got.push(...messagesIn(held.text()))
    }
    assert.deepEqual(got, Array.from({ length: 3 * downstreamLimits.resumableStreams }, (_, n) => `{"n":${n}}`))
    assert.equal(session.streams.open().number, 2)
  })
  await t.test('a stream that has just begun is not the one that is forgotten, though all before it are open', async (t) => {
    const session = begin(t)
    for (let n = 0; n < downstreamLimits.resumableStreams; n++) session.streams.open().attach(connection().stream)
    const stream = session.streams.open()
    const held = connection()
    stream.attach(held.stream)
    held.break()
    stream.send('{"method":"the answer"}')
    const back = listening(session, `${stream.number}-0`)
    assert.deepEqual(messagesIn(back.text()), ['{"method":"the answer"}'])
  })
  await t.test('what can be replayed is forgotten after a while', async (t) => {
    const { session, tick } = begun(t)
    listening(session)
    session.deliver('old')
    tick(downstreamLimits.replayTime - minute)
    session.deliver('new')
    const replayed = (): string[] => {
      const back = listening(session, '1-0')
      return [...back.text().matchAll(/"method":"(\w+)"/g)].map(([, method]) => String(method))
    }
    assert.deepEqual(replayed(), ['old', 'new'])
    tick(2 * minute)
    assert.deepEqual(replayed(), ['new'])
  })
  await t.test('questions that are open to it are bounded in size, and to all sessions together', async (t) => {
    const { sessions } = startSessions(t)
    const over = new AbortController()
    const ask = (session: Session, size: number): { failed: () => boolean } => {
      let failed = false
      session.askOn(() => {}, question(JSON.stringify({ x: 'x'.repeat(size) }), over)).catch(() => { failed = true })
      return { failed: () => failed }
    }
    const [first, late] = [beginSession(sessions, view('asking'), '2025-11-25', {}), beginSession(sessions, view('late'), '2025-11-25', {})]
    const large = downstreamLimits.questionsSize - 1_000
    const [one, two] = [ask(first, large), ask(first, 1_000)]
    await turnsOfLoop(1)
    assert.deepEqual([one.failed(), two.failed()], [false, true])
    const [refused, small] = [ask(late, large), ask(late, downstreamLimits.allQuestionsSize / 10 - 1_000)]
    await turnsOfLoop(1)
    assert.deepEqual([refused.failed(), small.failed()], [true, false], 'who comes late has a tenth')
    first.questions.answer({ kind: 'response', id: 1, resultText: '{}' })
    const taken = ask(late, large / 2)
    await turnsOfLoop(1)
    assert.equal(taken.failed(), false)
    over.abort('enough')
  })
  await t.test('the size of a question is the memory of its text and its values', async (t) => {
    const { sessions } = startSessions(t)
    const session = beginSession(sessions, view('asking'), '2025-11-25', {})
    const over = new AbortController()
    /** How many questions with this text can be open. */
    const most = async (paramsText: string): Promise<number> => {
      let failed = 0
      const asked = question(paramsText, over)
      for (let n = 0; n < downstreamLimits.questionsPerSession; n++) session.askOn(() => {}, asked).catch(() => { failed++ })
      await turnsOfLoop(1)
      const open = downstreamLimits.questionsPerSession - failed
      session.questions.clear()
      await turnsOfLoop(1)
      return open
    }
    const size = downstreamLimits.questionsSize / 128
    assert.equal(await most(`{"x":"${'x'.repeat(size - 1_000)}"}`), 128)
    assert.equal(await most(`{"x":"${'ж'.repeat(size - 1_000)}"}`), 64)
    assert.equal(await most(`{"x":[${Array(20_000).fill('{}').join()}]}`), 10, '160 bytes for each object, and 3 characters')
    over.abort('enough')
  })
  await t.test('a question that is withdrawn while it waits for a stream is not asked', async (t) => {
    const session = begin(t)
    const withdrawn = new AbortController()
    const asking = session.ask(question('{}', withdrawn))
    withdrawn.abort('the upstream knows already')
    const held = listening(session)
    await assert.rejects(asking, { message: 'the upstream knows already' })
    assert.deepEqual(messagesIn(held.text()), [])
  })
  await t.test('what is not read counts in bytes, whatever the characters', async (t) => {
    const { session } = begun(t)
    const held = listening(session)
    held.reads(false)
    const before = memoryBudget.held
    session.deliver('large', JSON.stringify('ж'.repeat(100_000)))
    assert.ok(memoryBudget.held - before >= 200_000 * baseLimits.unreadCost, String(memoryBudget.held - before))
    held.break()
    assert.equal(memoryBudget.held, before)
  })
  await t.test('a slow reader is let go; a burst is no sign of one', async (t) => {
    const { session, tick } = begun(t)
    const large = JSON.stringify('x'.repeat(downstreamLimits.streamBacklog + 1))
    const burst = (count: number): void => { for (let n = 0; n < count; n++) session.deliver('large', large) }
    const held = listening(session)
    held.reads(false)
    burst(3)
    assert.equal(held.open(), true)
    held.reads(true)
    tick(downstreamLimits.streamBacklogTime + 1)
    session.deliver('after')
    assert.deepEqual([held.open(), messagesIn(held.text()).length], [true, 4], 'who reads it, stays')
    held.reads(false)
    burst(2)
    tick(downstreamLimits.streamBacklogTime + 1)
    session.deliver('more')
    assert.equal(held.open(), false, 'who does not, is let go in the end')
    const other = listening(session)
    other.reads(false)
    burst(6)
    assert.equal(other.open(), false, 'or at once, where it is far too much')
  })
  await t.test('where all that is unread is too much, the slowest reader goes', async (t) => {
    const { sessions } = startSessions(t)
    const opened = (name: string): { session: Session, held: ReturnType<typeof connection> } => {
      const session = beginSession(sessions, view(name), '2025-11-25', {})
      const held = listening(session)
      return { session, held }
    }
    const slow = Array.from({ length: baseLimits.memory / baseLimits.unreadCost / downstreamLimits.streamBacklog - 1 }, (_, n) => opened(`slow ${n}`))
    const slowest = opened('slowest')
    const fast = opened('fast')
    const message = JSON.stringify('x'.repeat(downstreamLimits.streamBacklog - 1_000))
    for (const { session, held } of [...slow, slowest]) { held.reads(false); session.deliver('large', message) }
    slowest.session.deliver('large', JSON.stringify('x'.repeat(3_000)))
    fast.session.deliver('large', message)
    assert.equal([...slow, slowest, fast].every(({ held }) => held.open()), true)
    for (const { session } of slow) session.deliver('large', JSON.stringify('x'.repeat(1_000)))
    assert.deepEqual([slow.every(({ held }) => held.open()), slowest.held.open(), fast.held.open()], [true, false, true])
  })
  await t.test('log messages below the level that the client set are not for it', async (t) => {
    const session = begin(t)
    const held = listening(session)
    const hears = (level: string): boolean => {
      const before = held.text().length
      session.deliver('notifications/message', `{"level":${JSON.stringify(level)},"data":1}`)
      return held.text().length > before
    }
    assert.equal(hears('debug'), true, 'no level set: the server decides')
    session.level = 'warning'
    assert.deepEqual(['debug', 'notice', 'warning', 'emergency', 'unheard of'].map(hears), [false, false, true, true, true])
  })
  await t.test('when it ends its streams end, and it hears no more', async (t) => {
    const { session, sessions } = begun(t)
    const held = listening(session)
    sessions.end(session, 'over')
    assert.equal(held.stream.isOpen, false)
    const before = held.text()
    session.deliver('late')
    assert.equal(held.text(), before)
  })
})
