// Which server a URI is read from, and which resources are hidden.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { ItemClaimsByServer } from '../../plugins/gateway/claims.ts'
import type { ViewSection } from '../../plugins/gateway/section.ts'
import { isResourceHidden, findResourceTarget, type Surface } from '../../plugins/gateway/surface.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import { catalogueOf, claimsWith, fold, keys, listed, section, type Lists } from '../helpers/surface.ts'

test('a URI stays with the server that listed it, template or not, and is read nowhere else', async () => {
  const lists = (uris: string[], templates: string[] = []): Lists =>
    ({ resources: uris.map((uri) => ({ uri })), resourceTemplates: templates.map((uriTemplate) => ({ uriTemplate })) })
  const [a, b] = [section('a', undefined), section('b', undefined)]
  const claimsOf = claimsWith(new ItemClaimsByServer())
  const at = (ofA: Lists | undefined, ofB: Lists | undefined): Surface => fold(
    [{ ...a, catalogue: ofA && catalogueOf(ofA) }, { ...b, catalogue: ofB && catalogueOf(ofB) }], { claimsOf }
  )
  const readers = (surface: Surface, ...uris: string[]): unknown[] => uris.map((uri) => findResourceTarget(surface, uri)?.provider)
  const ofB = lists(['x:1', 'x:2'], ['x:{n}', 'y:{n}'])
  assert.deepEqual(readers(at(lists(['x:1'], ['y:{n}']), ofB), 'x:1', 'x:2', 'x:3', 'y:1'), ['a', 'b', 'b', 'a'])
  for (const ofA of [lists([]), undefined]) {
    const surface = at(ofA, ofB)
    assert.deepEqual(readers(surface, 'x:1', 'x:2', 'x:3', 'y:1'), [undefined, 'b', 'b', undefined])
    assert.deepEqual(await keys(surface, 'resources'), ['x:2'])
    assert.deepEqual(await keys(surface, 'resourceTemplates'), ['x:{n}'])
    assert.deepEqual([isResourceHidden(surface, 'b', 'x:1'), isResourceHidden(surface, 'a', 'x:1'), isResourceHidden(surface, 'b', 'x:9')], [true, false, false])
  }
  const late = at(lists(['x:1', 'x:2'], ['x:3{n}', 'y:{n}']), ofB)
  assert.deepEqual(readers(late, 'x:1', 'x:2', 'x:31', 'y:1'), ['a', 'b', 'b', 'a'], 'what comes late takes nothing')
  // With another configuration all begins anew.
  const anew = fold([section('a', lists([])), section('b', ofB)], { claimsOf })
  assert.deepEqual(readers(anew, 'x:1', 'y:1'), ['b', 'b'])
})

test('a user\'s server takes no URI that an admin\'s lists or has a template for', async () => {
  const user: ServerConfig = { owner: 'ann' }
  const surface = fold([
    section('a', { resources: [{ uri: 'x:1' }], resourceTemplates: [{ uriTemplate: 'x:a/{n}' }, { uriTemplate: '{+all}' }] }),
    section(
      'u',
      {
        resources: [{ uri: 'x:1' }, { uri: 'x:a/b/c' }, { uri: 'x:2' }],
        resourceTemplates: [{ uriTemplate: 'x:a/b/{n}' }, { uriTemplate: 'x:a/{n}' }, { uriTemplate: 'x:{n}' }]
      },
      { config: user }
    )
  ])
  assert.deepEqual(
    ['x:1', 'x:a/b/c', 'x:a/b/d', 'x:2', 'x:3'].map((uri) => findResourceTarget(surface, uri)?.provider),
    ['a', 'a', 'a', 'u', 'u']
  )
  assert.deepEqual(await keys(surface, 'resources'), ['x:1', 'x:2'])
})

test('a URI that two list is the first one\'s, and read there', async () => {
  const surface = fold([
    section('a', { resources: [{ uri: 'x:1', name: 'of a' }], resourceTemplates: [{ uriTemplate: 'x:{n}', name: 'of a' }] }),
    section('b', {
      resources: [{ uri: 'x:1', name: 'of b' }, { uri: 'x:2' }],
      resourceTemplates: [{ uriTemplate: 'x:{n}', name: 'of b' }]
    })
  ])
  assert.deepEqual(await listed(surface, 'resources'), [{ uri: 'x:1', name: 'of a' }, { uri: 'x:2' }])
  assert.deepEqual(await listed(surface, 'resourceTemplates'), [{ uriTemplate: 'x:{n}', name: 'of a' }])
  assert.equal(findResourceTarget(surface, 'x:1')?.provider, 'a')
  assert.equal(findResourceTarget(surface, 'x:2')?.provider, 'b', 'what is listed comes before what fits a template')
  assert.equal(findResourceTarget(surface, 'x:3')?.provider, 'a')
  assert.equal(findResourceTarget(surface, 'y:3'), undefined)
})

test('what is hidden is read through no template of its server; through another server\'s it may be', async () => {
  const lists: Lists = { resources: [{ uri: 'x:1' }, { uri: 'x:2' }], resourceTemplates: [{ uriTemplate: 'x:{n}' }] }
  const off: ServerConfig = { resources: { 'x:1': { enabled: false }, 'x:3': { enabled: false }, 'x:4': { description: 'd' } } }
  const table: Array<[string, ViewSection[], Record<string, string | undefined>]> = [
    ['disabled, listed or not', [section('s', lists, { config: off })], { 'x:1': undefined, 'x:2': 's', 'x:3': undefined, 'x:4': 's' }],
    ['not selected', [section('s', lists, { member: { resources: ['x:2', 'x:{n}'] } })], { 'x:1': undefined, 'x:2': 's', 'x:3': 's' }],
    [
      'the template not selected',
      [section('s', lists, { member: { resources: ['x:2'] } })],
      { 'x:1': undefined, 'x:2': 's', 'x:3': undefined }
    ],
    ['nothing selected', [section('s', lists, { member: { resources: [] } })], { 'x:1': undefined, 'x:2': undefined, 'x:3': undefined }],
    [
      'hidden on one server, not on the other',
      [section('s', lists, { config: off }), section('t', { resourceTemplates: [{ uriTemplate: 'x:{other}' }] })],
      { 'x:1': 't', 'x:2': 's', 'x:3': 't', 'x:4': 's' }
    ],
    [
      'disabled on a server of which nothing is known yet',
      [section('s', undefined, { config: off }), section('t', lists)],
      { 'x:1': 't', 'x:3': 't' }
    ]
  ]
  for (const [says, list, readers] of table) {
    for (const raw of list.length === 1 ? [false, true] : [false]) {
      const surface = fold(list, { isRaw: raw })
      for (const [uri, server] of Object.entries(readers)) {
        assert.equal(findResourceTarget(surface, uri)?.provider, server, `${says}${raw ? ', alone' : ''}: ${uri}`)
      }
    }
  }
  assert.deepEqual(
    [...fold([section('s', lists, { config: off, member: { resources: ['x:1'] } })]).hidden.keys],
    ['s\nx:1', 's\nx:3', 's\nx:2']
  )
})

test('what an admin disabled on his server is not a user\'s, listed there or matched by a template', async () => {
  const lists: Lists = { resources: [{ uri: 'x:1' }, { uri: 'x:2' }] }
  const off: ServerConfig = { resources: { 'x:1': { enabled: false } } }
  const ofUser = section('u', { resources: [{ uri: 'x:1' }, { uri: 'x:3' }], resourceTemplates: [{ uriTemplate: 'x:{n}' }] }, { config: { owner: 'ann' } })
  for (const known of [lists, undefined]) {
    const surface = fold([section('s', known, { config: off }), ofUser])
    assert.equal(findResourceTarget(surface, 'x:1'), undefined)
    assert.ok(isResourceHidden(surface, 'u', 'x:1') && !isResourceHidden(surface, 'u', 'x:3'))
    assert.deepEqual(await keys(surface, 'resources'), known ? ['x:2', 'x:3'] : ['x:3'])
    assert.equal(findResourceTarget(surface, 'x:3')?.provider, 'u')
  }
  // On the user's own route it is his.
  assert.equal(findResourceTarget(fold([ofUser], { isRaw: true }), 'x:1')?.provider, 'u')
})

test('a file that is hidden is read under no spelling with more slashes; what is listed under one is another resource', async () => {
  const off: ServerConfig = { resources: { 'file:///etc/x': { enabled: false }, 'notes://a/b//c': { enabled: false } } }
  const lists: Lists = {
    resources: [{ uri: 'file:///etc/x' }, { uri: 'file:////etc//x' }],
    resourceTemplates: [{ uriTemplate: 'file://{+path}' }, { uriTemplate: 'notes://{+path}' }]
  }
  const ofAdmin = section('s', lists, { config: off })
  const ofUser = section('u', lists, { config: { owner: 'ann' } })
  const spellings = [
    'file:///etc//x', 'file:////etc/x', 'file://localhost//etc/x', 'file:////etc/./%78', 'FILE:///etc///x//', 'file:///etc/x/', 'file:///etc%2F%2fx',
    'file:///usr//../etc//x', 'file:///usr/..//etc/x', 'file:///etc/y%2f..%2fx', 'file:////etc//x?', 'notes://a//b/c', 'notes://a/b/c'
  ]
  for (const [raw, sections] of [[true, [ofAdmin]], [false, [ofAdmin]], [false, [ofAdmin, ofUser]]] as const) {
    const surface = fold([...sections], { isRaw: raw })
    for (const uri of spellings) {
      assert.equal(findResourceTarget(surface, uri), undefined, uri)
      for (const { server } of sections) assert.ok(isResourceHidden(surface, server.name, uri), uri)
    }
    for (const uri of ['file:////etc//x', 'file:///etc//y', 'file:///etc/x/y', 'file:///x', 'notes://a/b/c?d=//e']) {
      assert.equal(findResourceTarget(surface, uri)?.provider, 's', uri)
      assert.ok(!isResourceHidden(surface, 's', uri), uri)
    }
  }
  // A file of two slashes that is disabled does not hide the one that is listed with one.
  const other = fold([section('s', lists, { config: { resources: { 'file:////etc//x': { enabled: false } } } })])
  assert.deepEqual(['file:///etc/x', 'file:////etc//x', 'file:///etc//x'].map((uri) => findResourceTarget(other, uri)?.provider), ['s', undefined, undefined])
  assert.deepEqual(await keys(other, 'resources'), ['file:///etc/x'])
})

test('the case of a scheme and a host, and a slash behind it, make no other resource of one that is hidden', async () => {
  const off: ServerConfig = { resources: { 'x://off': { enabled: false }, 'x://Mixed/a': { enabled: false } } }
  const lists: Lists = { resources: [{ uri: 'x://off' }, { uri: 'x://LISTED' }], resourceTemplates: [{ uriTemplate: 'x://{+id}' }] }
  for (const raw of [true, false]) {
    const surface = fold([section('s', lists, { config: off })], { isRaw: raw })
    for (const uri of ['x://off', 'x://OFF', 'X://Off', 'x://off/', 'x://o%46f', 'x://u@off', 'x://u:p@OFF/', 'x://mixed/a', 'x://MIXED/a/']) {
      assert.equal(findResourceTarget(surface, uri), undefined, uri)
      assert.ok(isResourceHidden(surface, 's', uri), uri)
    }
    for (const uri of ['x://LISTED', 'x://other', 'x://off/a', 'x://mixed/A', 'x://off?a']) {
      assert.equal(findResourceTarget(surface, uri)?.provider, 's', uri)
      assert.ok(!isResourceHidden(surface, 's', uri), uri)
    }
  }
})

test('a URI without end is looked for at no cost, and taken for hidden where anything is', async () => {
  const many = section('s', {
    resources: [{ uri: 'x:1' }],
    resourceTemplates: Array.from({ length: 20_000 }, (_, n) => ({ uriTemplate: `http://a/${n}/{n}` }))
  })
  const surface = fold([many, section('t', {}, { config: { resources: { 'x:2': { enabled: false } } } })])
  for (const uri of [`http://a/${'%41'.repeat(330_000)}`, `http://a/b${'%41'.repeat(100)}`]) {
    assert.equal(findResourceTarget(surface, uri), undefined)
  }
  const longUri = `x:${'.//'.repeat(330_000)}1`
  assert.deepEqual(
    [isResourceHidden(surface, 't', longUri), isResourceHidden(fold([many]), 's', longUri), isResourceHidden(surface, 't', 'x:2'), isResourceHidden(surface, 't', 'x:3')],
    [true, false, true, false]
  )
})

test('of templates that fit the most telling reads; among several servers, one without a scheme reads nothing', async () => {
  const table: Array<[string, Array<[string, string[]]>, Record<string, string | undefined>]> = [
    [
      'the longest literals first, whoever lists first',
      [['a', ['file:///{path}']], ['b', ['file:///b/{path}']], ['c', ['file:///b/{path}/end']]],
      { 'file:///x': 'a', 'file:///b/x': 'b', 'file:///b/x/end': 'c', 'file:///c/end': 'a' }
    ],
    ['of equally long ones the first in configuration', [['a', ['x:{a}']], ['b', ['x:{b}']]], { 'x:1': 'a' }],
    [
      'no literal scheme',
      [['greedy', ['{+uri}', '{scheme}://{host}', '/{path}', 'x{y}:z', '1x:{y}', '']], ['b', ['x://{id}']]],
      { 'x://1': 'b', 'y://1': undefined, '/a': undefined, 'xa:z': undefined, '1x:a': undefined, '': undefined }
    ],
    ['a scheme is one in any case and with its signs', [['a', ['HTTP://{x}', 'a+b.c-1:{x}']]], { 'HTTP://1': 'a', 'a+b.c-1:2': 'a' }]
  ]
  for (const [says, list, readers] of table) {
    const surface = fold(
      list.map(([name, templates]) => section(name, { resourceTemplates: templates.map((uriTemplate) => ({ uriTemplate })) }))
    )
    for (const [uri, server] of Object.entries(readers)) assert.equal(findResourceTarget(surface, uri)?.provider, server, `${says}: ${uri}`)
  }
  const greedy = section('s', { resourceTemplates: [{ uriTemplate: '{+uri}' }, { uriTemplate: 'x://{id}' }] })
  assert.deepEqual(
    ['x://1', 'anything'].map((uri) => findResourceTarget(fold([greedy], { isRaw: true }), uri)?.key), ['x://{id}', '{+uri}'],
    'alone it reads whatever it likes'
  )
  assert.deepEqual(
    await keys(fold([greedy]), 'resourceTemplates'), ['{+uri}', 'x://{id}'],
    'they are listed all the same, in their order'
  )
})
