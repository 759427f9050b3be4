import type { ProcessExit, ProcessOrder } from '../../../protocol/transports/started-process.ts'

// The protocol between the gateway and its launcher. Orders and reports are messages of the IPC channel, which nobody else can reach, and
// the standard streams of a process come through it as well, each as the handle of a message: there is no address to connect to.

/** A process to be started. */
export interface LaunchOrder extends ProcessOrder { readonly id: number }

/** Of a process that runs, its streams come first, then its id, then its end. A stream without a handle is one that has been closed. */
export type LaunchReport =
  | { readonly ready: true }
  | { readonly id: number, readonly stream: number }
  | { readonly id: number, readonly pid: number }
  | { readonly id: number, readonly error: { readonly code?: string | undefined, readonly message: string } }
  | { readonly id: number, readonly exit: ProcessExit }
