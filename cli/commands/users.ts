import type { Command } from 'commander'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { segment, withApi } from '../context.ts'

export function addUserCommands (program: Command): void {
  const user = program.command('user').description('accounts')
  user.command('reset-password')
    .description('set another password, which ends all logins of the account')
    .argument('<username>')
    .option('--password-stdin', 'read it from stdin; without this, a random one is made and shown')
    .action(async (username: string, { passwordStdin = false }: { passwordStdin?: boolean }, command: Command) => {
      const newPassword = passwordStdin ? readFileSync(0, 'utf8').replace(/\r?\n$/, '') : randomBytes(12).toString('base64url')
      await withApi(command, async ({ api, out }) => {
        await api.whole('PUT', `/api/users/${segment(username)}`, { newPassword })
        out.result({ username, ...(passwordStdin ? {} : { password: newPassword }) }, passwordStdin ? 'The password was changed' : newPassword)
        if (!passwordStdin && !out.json) out.remark(`This is the new password of ${JSON.stringify(username)}. It is shown only now.`)
      })
    })
}
