//! Several hosts and a real NATS server on this machine's loopback: sidecars, bridges, tmux servers and demo agents.
//! Where no NATS server can be had, all of it is counted as skipped.

mod asks;
mod careless;
mod clones;
mod cuts;
mod deaths;
mod demo;
mod fleet;
mod hostile;
mod managed;
mod proxy;
mod secrecy;
mod server;
mod service;
mod shells;
mod support;
mod three;
mod times;
mod websocket;
