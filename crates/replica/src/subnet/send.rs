//! The calls that a message makes.

use candid::Principal;

use super::contexts::ContextId;
use super::management::methods::check_call;
use super::member::Member;
use super::queues::{Content, Delivery};
use super::trace::Cause;
use crate::cycles;
use crate::run::Run;
use crate::system_api::message::{Answer, Request};
use crate::units::SECOND;

impl Member {
    /// Sends the calls of a message, and returns its answer. `number` is that of the execution. `routed`
    /// is false if it is a composite query whose calls of the management canister are not routed, because
    /// its subnet answers them.
    pub fn send_all(
        &mut self,
        run: &mut Run,
        context: ContextId,
        number: u64,
        time: u64,
        routed: bool,
    ) -> Answer {
        for request in std::mem::take(&mut run.effects.requests) {
            self.send(context, request, (Some(number), time), routed);
        }
        std::mem::replace(&mut run.effects.answer, Answer::Earlier)
    }

    fn send(
        &mut self,
        context: ContextId,
        request: Request,
        (cause, time): (Cause, u64),
        routed: bool,
    ) {
        let expiry = |seconds: u32| (time + u64::from(seconds) * SECOND) / SECOND * SECOND;
        let deadline = request.timeout.map_or(0, expiry);
        let prepaid = cycles::callback(self.rules(), self.wasm64());
        let callback = self.contexts.register(context, &request, deadline, prepaid);
        let Request { callee, method, argument, cycles, .. } = request;
        let management = callee == Principal::management_canister();
        // The canister's version when the message began.
        let version = self.canister.version().saturating_sub(1);
        let refused = match management && routed {
            true => check_call(&method, &argument, version, &self.routes).err(),
            false => None,
        };
        let call = Delivery {
            sender: self.canister.id(),
            receiver: callee,
            callback,
            deadline,
            cycles,
            cause,
            content: Content::Request { method, argument },
        };
        match refused {
            Some(rejection) => self.queues.push_input(call.answer(Err(rejection), cycles)),
            None => self.queues.push_output(call),
        }
    }
}
