// A peer allots ids, matches answers to requests, and hands on the rest.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { UpstreamError } from '../../protocol/errors.ts'
import type { Notification, Request, Response } from '../../protocol/message.ts'
import { parseMessage } from '../../protocol/parse-message.ts'
import { largeTextLength } from '../../protocol/text.ts'
import { answerTo, startPeer } from '../helpers/fake-peer.ts'

test('peer: answers in any order, errors too, each to its request', async () => {
  const { transport, peer, seen } = await startPeer()
  assert.equal(peer.nextId, 1)
  const first = peer.request('a', '{"x":1}')
  assert.equal(peer.nextId, 2)
  const second = peer.request('b')
  assert.deepEqual(
    transport.sent.map(({ message, id }) => [id, message.kind === 'request' && [message.id, message.method, message.paramsText]]),
    [[1, [1, 'a', '{"x":1}']], [2, [2, 'b', '{}']]]
  )
  peer.message(answerTo(2), undefined)
  peer.message({ kind: 'response', id: 1, errorText: '{"code":-5,"message":"m"}' }, undefined)
  assert.deepEqual(await second, answerTo(2))
  assert.equal((await first).errorText, '{"code":-5,"message":"m"}')
  assert.deepEqual(seen, [])
})

test('peer: answers to nothing, to "1" instead of 1, and to what was answered or given up, are nobody\'s', async () => {
  const { transport, peer, seen } = await startPeer()
  let over = 0
  const first = peer.request('a', undefined, { onPoll: () => {}, onSettled: () => { over++; return undefined } })
  for (const id of [0, 2, -1, 1.5, '1', '', null]) peer.message(answerTo(id), undefined)
  assert.equal(over, 0)
  peer.abandon(1, new UpstreamError('timeout', 'too slow'))
  peer.message(answerTo(1), undefined)
  peer.failed(1, new UpstreamError('broken', 'late'))
  await assert.rejects(first, { fault: 'timeout', message: 'too slow' })
  assert.deepEqual(transport.dropped, [1])
  assert.equal(over, 1)
  const second = peer.request('b')
  peer.message(answerTo(1), undefined)
  peer.message(answerTo(2, { resultText: '1' }), undefined)
  peer.message(answerTo(2, { resultText: '2' }), undefined)
  assert.equal((await second).resultText, '1')
  assert.deepEqual(seen, [])
})

test('peer: requests and notifications of the other side come with the request on whose stream they came', async () => {
  const { peer, seen } = await startPeer()
  peer.message({ kind: 'request', id: 1, idText: '1', method: 'ask', params: {}, paramsText: '{}' }, 7)
  peer.message({ kind: 'notification', method: 'tell', params: {}, paramsText: '{}' }, undefined)
  assert.deepEqual(seen, [['request', 'ask', 7], ['notification', 'tell', undefined]])
})

test('peer: answering: under the id as it was written', async () => {
  const { transport, peer } = await startPeer()
  peer.answer('12345678901234567890', { kind: 'response', id: 0, resultText: '{"n":1e400}' })
  peer.answer('""', { kind: 'response', id: '', errorText: '{"code":1}' })
  assert.deepEqual(transport.sent.map(({ message }) => message), [
    { kind: 'response', id: Number('12345678901234567890'), resultText: '{"n":1e400}' },
    { kind: 'response', id: '', errorText: '{"code":1}' }
  ])
})

test('peer: when the connection goes, everything pending fails, each once, and then it is told, once', async () => {
  const { transport, peer, seen } = await startPeer()
  const overs: number[] = []
  const pending = [1, 2, 3].map(async (id) =>
    await peer.request('a', undefined, {
      onPoll: () => {},
      onSettled: () => {
        overs.push(id)
        seen.push(['over', id, undefined])
        return undefined
      }
    }))
  peer.message(answerTo(2), undefined)
  peer.closed(new UpstreamError('broken', 'gone'))
  peer.closed(new UpstreamError('broken', 'gone again'))
  peer.message(answerTo(1), undefined)
  assert.deepEqual(
    (await Promise.allSettled(pending)).map((each) =>
      each.status === 'fulfilled' ? each.value.id : (each.reason as UpstreamError).message
    ),
    ['gone', 2, 'gone']
  )
  assert.deepEqual(overs, [2, 1, 3])
  assert.deepEqual(seen.at(-1), ['closed', 'gone', undefined])
  assert.equal(seen.filter(([what]) => what === 'closed').length, 1)
  const before = transport.sent.length
  let over = 0
  await assert.rejects(
    peer.request('late', undefined, { onPoll: () => {}, onSettled: () => { over++; return undefined } }),
    { fault: 'unreachable', message: 'gone' }
  )
  peer.notify('late')
  peer.answer('1', answerTo(1))
  assert.equal(transport.sent.length, before, 'nothing is sent on a connection that is gone')
  assert.equal(over, 1)
})

test('peer: a poll is told to who follows the request, while it is pending', async () => {
  const { peer } = await startPeer()
  const paused: number[] = []
  void peer.request('a', undefined, { onPoll: (retry) => { paused.push(retry) }, onSettled: () => undefined })
  peer.paused(1, 500)
  peer.paused(2, 600)
  peer.message(answerTo(1), undefined)
  peer.paused(1, 700)
  assert.deepEqual(paused, [500])
})

test('peer: null and [] of the other side are read as absent, by method and era, and told', async () => {
  const { peer } = await startPeer()
  const told: string[] = []
  const heard: Array<[Record<string, unknown>, string]> = []
  const note = ({ params, paramsText }: Request | Notification): void => { heard.push([params, paramsText]) }
  peer.handlers = { request: note, notification: note, closed: () => {}, mended: (what, places) => { told.push(`${what}: ${places.join()}`) } }
  const results: Array<[string, boolean, string, string]> = [
    ['tools/call', false, '{"structuredContent":null,"isError":null}', '{"content":[]}'],
    ['tools/call', true, '{"structuredContent":null,"isError":null}', '{"content":[],"structuredContent":null}'],
    ['ping', false, '[]', '{}'], ['vendor/x', true, '{"a":null}', '{"a":null}'], ['prompts/list', false, '{"prompts":null}', '{"prompts":null}']
  ]
  for (const [method, isModern, written, read] of results) {
    peer.isModern = isModern
    const answer = peer.request(method)
    peer.message({ kind: 'response', id: peer.nextId - 1, resultText: written }, undefined)
    assert.equal((await answer).resultText, read, `${method} ${written}`)
  }
  const failing = peer.request('tools/call')
  peer.message({ kind: 'response', id: peer.nextId - 1, errorText: '{"code":-5,"message":null,"data":null}' }, undefined)
  assert.equal((await failing).errorText, '{"code":-5,"message":"The server returned this error without a message (-5)","data":null}')
  const progress = '{"progressToken":1,"progress":2,"total":null}'
  peer.message({ kind: 'notification', method: 'notifications/progress', params: JSON.parse(progress), paramsText: progress }, undefined)
  const asked = `{"messages":[],"systemPrompt":null,"pad":"${'x'.repeat(300_000)}"}`
  for (const text of [asked.replace(/x{300000}/, 'x'), asked]) {
    peer.message({ kind: 'request', id: 7, idText: '7', method: 'sampling/createMessage', params: JSON.parse(text), paramsText: text }, undefined)
  }
  assert.deepEqual(heard.map(([params, text]) => [Object.keys(params), Object.keys(JSON.parse(text))]), [
    [['progressToken', 'progress'], ['progressToken', 'progress']],
    [['messages', 'pad'], ['messages', 'pad']], [['messages', 'pad'], ['messages', 'pad']]
  ])
  assert.deepEqual(told, [
    'results of tools/call: structuredContent,isError,content (missing)', 'results of tools/call: isError,content (missing)', 'results of ping: ', 'errors of tools/call: message',
    'notifications/progress: total', 'sampling/createMessage: systemPrompt', 'sampling/createMessage: systemPrompt'
  ])
})

test('peer: a large answer is repaired like a small one', async () => {
  const { peer } = await startPeer()
  for (const [id, size] of [1_000, largeTextLength].entries()) {
    const answer = peer.request('tools/call')
    const text = JSON.stringify('x'.repeat(size))
    const message = parseMessage(`{"jsonrpc":"2.0","id":${id + 1},"result":{"content":${text}}}`, 10, 1, 'server')
    peer.message(message as Response, undefined)
    assert.equal((await answer).resultText, `{"content":[{"type":"text","text":${text}}]}`, String(size))
  }
})
